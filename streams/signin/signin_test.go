package signin_test

import (
	"errors"
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

// TestLinkIsUsedOnce, whoever races for it.
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
			t.Errorf("%+v, %v", got, err)
		}
	}
	var took atomic.Int32
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			switch _, err := s.TakeLink(t.Context(), token, now); {
			case err == nil:
				took.Add(1)
			case !errors.Is(err, noLink):
				t.Error(err)
			}
		})
	}
	if all.Wait(); took.Load() != 1 {
		t.Errorf("%d have used one link", took.Load())
	}
	if _, err := s.Link(t.Context(), token, now); !errors.Is(err, noLink) {
		t.Error(err)
	}
}

// TestWhatExpires is refused from that moment, and leaves the bucket.
func TestWhatExpires(t *testing.T) {
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
	if _, err := s.TakeLink(t.Context(), link, now.Add(time.Second)); !errors.Is(err, noLink) {
		t.Error(err)
	}
	if _, err := s.Session(t.Context(), session, now.Add(time.Hour)); !errors.Is(err, noSession) {
		t.Error(err)
	}
	for deadline := time.Now().Add(time.Minute); ; {
		keys, err := kv.Keys(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(keys) == 1 && strings.HasPrefix(keys[0], "session.") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("kept: %q", keys)
		}
	}
}

// TestSessionEnds, and what is kept of it signs nobody in.
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
		t.Errorf("%+v, %v", got, err)
	}
	keys, err := kv.Keys(t.Context())
	if err != nil || len(keys) != 1 || strings.Contains(keys[0], token) {
		t.Fatalf("%q, %v", keys, err)
	}
	for _, wrong := range []string{
		"", "x", strings.TrimPrefix(keys[0], "session."), token + "A", token[1:], token + "\n",
		strings.ToUpper(token), "a.b", "*",
	} {
		if _, err := s.Session(t.Context(), wrong, now); !errors.Is(err, noSession) {
			t.Errorf("%q: %v", wrong, err)
		}
		if _, err := s.Link(t.Context(), wrong, now); !errors.Is(err, noLink) {
			t.Errorf("%q: %v", wrong, err)
		}
		if err := s.End(t.Context(), wrong); err != nil {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if _, err := s.TakeLink(t.Context(), token, now); !errors.Is(err, noLink) {
		t.Errorf("a session is taken for a link: %v", err)
	}
	for range 2 {
		if err := s.End(t.Context(), token); err != nil {
			t.Error(err)
		}
		if _, err := s.Session(t.Context(), token, now); !errors.Is(err, noSession) {
			t.Error(err)
		}
	}
}

// TestFormIsSentOnce in its session, whoever races to send it.
func TestFormIsSentOnce(t *testing.T) {
	t.Parallel()
	s, kv := open(t)
	var firsts atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			first, err := s.Once(t.Context(), "session", "mark")
			if err != nil {
				t.Error(err)
			}
			if first {
				firsts.Add(1)
			}
		})
	}
	if all.Wait(); firsts.Load() != 1 {
		t.Errorf("%d were the first", firsts.Load())
	}
	for _, form := range [][2]string{{"session", "another"}, {"another", "mark"}} {
		if first, err := s.Once(t.Context(), form[0], form[1]); !first || err != nil {
			t.Errorf("%q: %t, %v", form, first, err)
		}
	}
	for range 2 {
		if err := s.Unsent(t.Context(), "session", "mark"); err != nil {
			t.Error(err)
		}
	}
	for _, want := range []bool{true, false} {
		if first, err := s.Once(t.Context(), "session", "mark"); first != want || err != nil {
			t.Errorf("once more: %t, %v", first, err)
		}
	}
	if keys, err := kv.Keys(t.Context()); err != nil || len(keys) != 3 {
		t.Errorf("%q, %v", keys, err)
	}
}
