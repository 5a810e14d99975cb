package signin_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/signin"
	"hubcloud/streams/streamstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }

func open(t *testing.T) (*signin.Store, jetstream.KeyValue) {
	t.Helper()
	conns := streamstest.Start(t)
	buckets, err := streams.OpenBuckets(t.Context(), conns, 1)
	streamstest.Must(t, err)
	return signin.New(conns.Cloud, buckets.SignIn, nil), buckets.SignIn
}

func newLink(t *testing.T, s *signin.Store, link domain.SignInLink) (token string) {
	t.Helper()
	token, err := s.NewLink(t.Context(), link)
	streamstest.Must(t, err)
	return token
}

var (
	noLink    = &domain.Error{Code: domain.CodeNotFound}
	noSession = &domain.Error{Code: domain.CodeUnauthenticated}
)

// TestLinkIsUsedOnce uses a link by concurrent calls.
func TestLinkIsUsedOnce(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	now := time.Now()
	made := domain.SignInLink{
		Email:     "ann@example.org",
		Next:      "/portal/x",
		CreatedAt: now,
		ExpiresAt: now.Add(15 * time.Minute),
	}
	token := newLink(t, s, made)
	for range 2 {
		if got, err := s.Link(t.Context(), token, now); err != nil || got.Email != made.Email ||
			got.Next != made.Next {
			t.Errorf("Link: got %+v, %v, want %+v", got, err, made)
		}
	}
	var took atomic.Int32
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			switch _, err := s.UseLink(t.Context(), token, now); {
			case err == nil:
				took.Add(1)
			case !errors.Is(err, noLink):
				t.Error(err)
			}
		})
	}
	if all.Wait(); took.Load() != 1 {
		t.Errorf("%d calls have used the link, want 1", took.Load())
	}
	if _, err := s.Link(t.Context(), token, now); !errors.Is(err, noLink) {
		t.Errorf("Link after its use: got %v, want ErrSignInLink", err)
	}
}

// TestExpiry checks that expired links and sessions are rejected, and leave the bucket.
func TestExpiry(t *testing.T) {
	t.Parallel()
	s, kv := open(t)
	now := time.Now()
	link := newLink(t, s, domain.SignInLink{CreatedAt: now, ExpiresAt: now.Add(time.Second)})
	session := begin(t, s, time.Hour)
	if _, err := s.UseLink(t.Context(), link, now.Add(time.Second)); !errors.Is(err, noLink) {
		t.Errorf("UseLink of an expired link: got %v, want ErrSignInLink", err)
	}
	later := now.Add(time.Hour + time.Minute)
	if _, err := s.Session(t.Context(), session, later); !errors.Is(err, noSession) {
		t.Errorf("Session of an expired session: got %v, want ErrNotSignedIn", err)
	}
	streamstest.EventuallyNil(t, "the link has left the bucket", func() error {
		keys, err := kv.Keys(t.Context())
		if err == nil && (len(keys) != 1 || !strings.HasPrefix(keys[0], "session.")) {
			err = fmt.Errorf("the bucket has %q", keys)
		}
		return err
	})
}

// TestSessionEnds checks a session until its end, and that no other text is accepted as its token,
// such as its key in the bucket.
func TestSessionEnds(t *testing.T) {
	t.Parallel()
	s, kv := open(t)
	now := time.Now()
	made := domain.PortalSession{
		AccountID: "a",
		Email:     "ann@example.org",
		FormToken: "f",
		CreatedAt: now,
		ExpiresAt: now.Add(time.Hour),
	}
	token, err := s.Begin(t.Context(), made)
	streamstest.Must(t, err)
	if got, err := s.Session(t.Context(), token, now); err != nil || got.Email != made.Email ||
		got.FormToken != made.FormToken ||
		got.AccountID != made.AccountID {
		t.Errorf("got session %+v, %v, want %+v", got, err, made)
	}
	keys, err := kv.Keys(t.Context())
	if err != nil || len(keys) != 1 || strings.Contains(keys[0], token) {
		t.Fatalf("got keys %q, %v, want one without the token", keys, err)
	}
	for _, wrong := range []string{
		"", "x", strings.TrimPrefix(keys[0], "session."), token + "A", token[1:], token + "\n",
		strings.ToUpper(token), "a.b", "*",
	} {
		if _, err := s.Session(t.Context(), wrong, now); !errors.Is(err, noSession) {
			t.Errorf("session %q: got %v, want ErrNotSignedIn", wrong, err)
		}
		if _, err := s.Link(t.Context(), wrong, now); !errors.Is(err, noLink) {
			t.Errorf("link %q: got %v, want ErrSignInLink", wrong, err)
		}
		if err := s.End(t.Context(), wrong); err != nil {
			t.Errorf("End(%q): got %v, want nil", wrong, err)
		}
	}
	if _, err := s.UseLink(t.Context(), token, now); !errors.Is(err, noLink) {
		t.Errorf("a session's token as a link: got %v, want ErrSignInLink", err)
	}
	for range 2 {
		streamstest.Must(t, s.End(t.Context(), token))
		if _, err := s.Session(t.Context(), token, now); !errors.Is(err, noSession) {
			t.Errorf("Session after End: got %v, want ErrNotSignedIn", err)
		}
	}
}

// TestFormIsSentOnce sends a form of a session by concurrent calls.
func TestFormIsSentOnce(t *testing.T) {
	t.Parallel()
	s, kv := open(t)
	var firsts atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			first, err := s.ClaimForm(t.Context(), "session", "mark")
			if err != nil {
				t.Error(err)
			}
			if first {
				firsts.Add(1)
			}
		})
	}
	if all.Wait(); firsts.Load() != 1 {
		t.Errorf("%d calls were the first, want 1", firsts.Load())
	}
	for _, form := range [][2]string{{"session", "another"}, {"another", "mark"}} {
		if first, err := s.ClaimForm(t.Context(), form[0], form[1]); !first || err != nil {
			t.Errorf("form %q: got first %t, %v, want true", form, first, err)
		}
	}
	for range 2 {
		streamstest.Must(t, s.ReleaseForm(t.Context(), "session", "mark"))
	}
	for _, want := range []bool{true, false} {
		if first, err := s.ClaimForm(t.Context(), "session", "mark"); first != want || err != nil {
			t.Errorf("after ReleaseForm: got first %t, %v, want %t", first, err, want)
		}
	}
	if keys, err := kv.Keys(t.Context()); err != nil || len(keys) != 3 {
		t.Errorf("got keys %q, %v, want 3", keys, err)
	}
}

// When the broker's answer was lost, a link was used up without a sign-in, and a form counted as
// sent although it was not processed.
func TestLostAnswerUsesUpNothing(t *testing.T) {
	t.Parallel()
	broker := streamstest.NewCutter(t, "PUB $KV.")
	conns := broker.Connect(t)
	buckets, err := streams.OpenBuckets(t.Context(), conns, 1)
	streamstest.Must(t, err)
	s, now := signin.New(conns.Cloud, buckets.SignIn, nil), time.Now()
	link := newLink(t, s, domain.SignInLink{
		Email: "ann@example.org", CreatedAt: now, ExpiresAt: now.Add(time.Hour),
	})
	broker.Arm()
	if got, err := s.UseLink(t.Context(), link, now); err != nil || broker.Armed() ||
		got.Email != "ann@example.org" {
		t.Errorf("UseLink with a lost answer: got %+v, %v, want ann's link", got, err)
	}
	if _, err := s.UseLink(t.Context(), link, now); !errors.Is(err, noLink) {
		t.Errorf("UseLink again: got %v, want ErrSignInLink", err)
	}
	token := begin(t, s, time.Hour)
	broker.Arm()
	if first, err := s.ClaimForm(t.Context(), token, "mark"); !first || err != nil ||
		broker.Armed() {
		t.Errorf("send the form with a lost answer: got first %v, %v, want true", first, err)
	}
	if first, err := s.ClaimForm(t.Context(), token, "mark"); first || err != nil {
		t.Errorf("send the form again: got first %v, %v, want false", first, err)
	}
}

// Each replica counted the mails to an address for itself, or not at all. Now all replicas share
// one limit.
func TestAllowHoldsOverReplicas(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	var replicas []*signin.Store
	var buckets *streams.Buckets
	for range 2 {
		conns := broker.Connect(t)
		var err error
		if buckets, err = streams.OpenBuckets(t.Context(), conns, 1); err != nil {
			t.Fatal(err)
		}
		replicas = append(replicas, signin.New(conns.Cloud, buckets.SignIn, nil))
	}
	now := time.Now()
	var granted atomic.Int32
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			wait, err := replicas[n%2].Allow(t.Context(), "to ann", 5, 10, now)
			if err != nil {
				t.Error(err)
			}
			if wait == 0 {
				granted.Add(1)
			}
		})
	}
	// Some of many concurrent calls may be rejected below the limit, but none is allowed above it.
	if all.Wait(); granted.Load() < 1 || granted.Load() > 5 {
		t.Errorf("%d of 20 concurrent calls allowed, want 1 to 5", granted.Load())
	}
	allow := func(name string, at time.Time) time.Duration {
		t.Helper()
		wait, err := replicas[0].Allow(t.Context(), name, 5, 10, at)
		streamstest.Must(t, err)
		return wait
	}
	for granted.Load() < 5 {
		if allow("to ann", now) > 0 {
			t.Fatalf("only %d allowed, want 5", granted.Load())
		}
		granted.Add(1)
	}
	for _, c := range []struct {
		name           string
		minutes, waits time.Duration
	}{{"to ann", 1, 5}, {"to bob", 0, 0}, {"to ann", 6, 0}, {"to ann", 7, 5}} {
		wait := allow(c.name, now.Add(c.minutes*time.Minute))
		if wait != c.waits*time.Minute {
			t.Errorf("%s after %d min: got wait %v, want %d min", c.name, c.minutes, wait, c.waits)
		}
	}
	keys, err := buckets.SignIn.Keys(t.Context())
	if err != nil || len(keys) != 2 {
		t.Errorf("keys of the bucket: got %q, %v, want 2", keys, err)
	}
}
