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
	if err != nil {
		t.Fatal(err)
	}
	return signin.New(conns.Cloud, buckets.SignIn, nil), buckets.SignIn
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
	token, err := s.NewLink(t.Context(), made)
	if err != nil {
		t.Fatal(err)
	}
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
	link, err := s.NewLink(
		t.Context(),
		domain.SignInLink{
			Email:     "ann@example.org",
			CreatedAt: now,
			ExpiresAt: now.Add(time.Second),
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	session, err := s.Begin(
		t.Context(),
		domain.PortalSession{
			Email:     "ann@example.org",
			CreatedAt: now,
			ExpiresAt: now.Add(time.Hour),
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.UseLink(t.Context(), link, now.Add(time.Second)); !errors.Is(err, noLink) {
		t.Errorf("UseLink of an expired link: got %v, want ErrSignInLink", err)
	}
	if _, err := s.Session(t.Context(), session, now.Add(time.Hour)); !errors.Is(err, noSession) {
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
	if err != nil {
		t.Fatal(err)
	}
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
		if err := s.End(t.Context(), token); err != nil {
			t.Error(err)
		}
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
		if err := s.ReleaseForm(t.Context(), "session", "mark"); err != nil {
			t.Error(err)
		}
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
