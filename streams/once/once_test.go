package once_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/once"
	"hubcloud/streams/streamstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }

const (
	orgA = "01935f2e-0000-7000-8000-00000000000a"
	orgB = "01935f2e-0000-7000-8000-00000000000b"
)

// newBroker returns a broker with the bucket of idempotency keys.
func newBroker(t *testing.T) *streamstest.Broker {
	t.Helper()
	broker := streamstest.New(t)
	if _, err := streams.OpenBuckets(t.Context(), broker.Connect(t), 1); err != nil {
		t.Fatal(err)
	}
	return broker
}

// newKeys returns the keys of another process.
func newKeys(t *testing.T, conns *streams.Conns, cfg once.Config) *once.Keys {
	t.Helper()
	cfg.ReplicaID, cfg.Logger = fmt.Sprint("r", replicas.Add(1)), slog.New(slog.DiscardHandler)
	keys, err := once.New(conns, cfg)
	streamstest.Must(t, err)
	t.Cleanup(keys.Close)
	return keys
}

// replicas counts the processes of all tests.
var replicas atomic.Int32

// answer runs a request under a key, which is answered with text if it runs.
func answer(t *testing.T, keys *once.Keys, org, key, text string) error {
	t.Helper()
	_, _, err := keys.Once(
		t.Context(), org, key, nil,
		func(context.Context, string) ([]byte, error) { return []byte(text), nil },
	)
	return err
}

func wantCode(t *testing.T, err error, code domain.Code) {
	t.Helper()
	if err == nil || domain.CodeOf(err) != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

// The answers of one organization's keys were bounded in number only: 9.6 GB a day.
func TestBytesAreBounded(t *testing.T) {
	t.Parallel()
	broker := newBroker(t)
	keys := newKeys(t, broker.Connect(t), once.Config{MaxBytesPerOrg: 10_000})
	large := fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 4000))
	for n := range 3 {
		if err := answer(t, keys, orgA, fmt.Sprint(n), large); err != nil {
			t.Fatalf("key %d: %v", n, err)
		}
	}
	wantCode(t, answer(t, keys, orgA, "next", large), domain.CodeRateLimited)
	if err := answer(t, keys, orgA, "1", large); err != nil {
		t.Errorf("a key with an answer: got %v, want the answer", err)
	}
	if err := answer(t, keys, orgB, "1", large); err != nil {
		t.Errorf("another organization: %v", err)
	}
}

// TestOnce: a client that repeated POST /v1/sites after a lost answer created two sites. Of
// concurrent duplicates at two replicas one runs, and all get its answer.
func TestOnce(t *testing.T) {
	t.Parallel()
	broker := newBroker(t)
	one := newKeys(t, broker.Connect(t), once.Config{})
	two := newKeys(t, broker.Connect(t), once.Config{})
	var runs atomic.Int32
	do := func(context.Context, string) ([]byte, error) {
		return fmt.Appendf(nil, `{"n":%d}`, runs.Add(1)), nil
	}
	var duplicates sync.WaitGroup
	for n := range 40 {
		keys := []*once.Keys{one, two}[n%2]
		duplicates.Go(func() {
			if got, _, err := keys.Once(t.Context(), orgA, "k", []byte("request"), do); err != nil ||
				string(got) != `{"n":1}` {
				t.Errorf("Once: got %s, %v, want the answer of the first run", got, err)
			}
		})
	}
	duplicates.Wait()
	_, _, err := two.Once(t.Context(), orgA, "k", []byte("another request"), do)
	wantCode(t, err, domain.CodeIdempotencyConflict)
	if got, _, err := one.Once(t.Context(), orgB, "k", []byte("request"), do); err != nil ||
		string(got) != `{"n":2}` {
		t.Errorf("Once of another organization: got %s, %v, want a run of its own", got, err)
	}
}

// TestFinalAnswers: a final error is returned again; after any other error the same request runs
// again, with the same ID.
func TestFinalAnswers(t *testing.T) {
	t.Parallel()
	keys := newKeys(t, newBroker(t).Connect(t), once.Config{})
	for _, tc := range []struct {
		err        error
		remembered bool
	}{
		{domain.ErrSiteNotFound(), true},
		{domain.Errorf(domain.CodeInvalidRequest, "email: is a member's"), true},
		{domain.Errorf(domain.CodeForbidden, "no"), true},
		{domain.ErrHubNotAddable(), false},
		{domain.Unavailable("later"), false},
		{errors.New("a fault"), false},
	} {
		name := tc.err.Error()
		var ids []string
		run := func(answer []byte, failure error) ([]byte, bool, error) {
			return keys.Once(
				t.Context(), orgA, name, nil, func(_ context.Context, id string) ([]byte, error) {
					ids = append(ids, id)
					return answer, failure
				},
			)
		}
		_, _, err := run(nil, tc.err)
		if !errors.Is(err, tc.err) {
			t.Errorf("%s: the first run returned %v", name, err)
		}
		got, replayed, err := run([]byte(`"done"`), nil)
		switch {
		case replayed != tc.remembered:
			t.Errorf("%s: replayed is %v, want %v", name, replayed, tc.remembered)
		case tc.remembered:
			if !errors.Is(err, tc.err) || len(ids) != 1 {
				t.Errorf("%s: then got %s, %v, runs %v, want the first answer", name, got, err, ids)
			}
		case err != nil || string(got) != `"done"` || len(ids) != 2 || ids[0] != ids[1] ||
			!domain.IsUUID(ids[0]):
			t.Errorf("%s: then got %s, %v, runs %v, want two with one UUID", name, got, err, ids)
		}
	}
}

// TestKilledBeforeTheAnswer: a process is killed after it has stored what the request makes and
// before it has stored the answer. The next run finds what was made by its ID.
func TestKilledBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	broker := newBroker(t)
	conns := broker.Connect(t)
	killed := newKeys(t, conns, once.Config{})
	var made string
	_, _, err := killed.Once(
		t.Context(), orgA, "k", nil, func(_ context.Context, id string) ([]byte, error) {
			made = id
			conns.Close()
			return []byte(`"lost"`), nil
		},
	)
	if err == nil {
		t.Error("an answer that is not stored was returned")
	}
	other := newKeys(t, broker.Connect(t), once.Config{})
	began := time.Now()
	got, _, err := other.Once(
		t.Context(), orgA, "k", nil, func(_ context.Context, id string) ([]byte, error) {
			if id != made {
				t.Errorf("made with ID %s, then run with ID %s", made, id)
			}
			return []byte(`"found"`), nil
		},
	)
	if err != nil || string(got) != `"found"` || time.Since(began) > 20*time.Second {
		t.Errorf("Once: got %s, %v, after %v", got, err, time.Since(began))
	}
}

// TestKeysAreBounded: an organization could fill the broker's memory with keys.
func TestKeysAreBounded(t *testing.T) {
	t.Parallel()
	const most = 20
	broker := newBroker(t)
	one := newKeys(t, broker.Connect(t), once.Config{MaxPerOrg: most})
	two := newKeys(t, broker.Connect(t), once.Config{MaxPerOrg: most})
	for n := range most {
		keys := []*once.Keys{one, two}[n%2]
		if err := answer(t, keys, orgA, fmt.Sprint("k", n), "1"); err != nil {
			t.Fatalf("key %d of %d: %v", n, most, err)
		}
	}
	for n, keys := range []*once.Keys{one, two} {
		err := answer(t, keys, orgA, "one too many", "1")
		wantCode(t, err, domain.CodeRateLimited)
		var rejected *domain.Error
		if errors.As(err, &rejected) && rejected.RetryAfter <= 0 {
			t.Error("rate_limited without RetryAfter")
		}
		if err := answer(t, keys, orgA, "k0", "1"); err != nil {
			t.Errorf("replica %d: a reserved key: %v", n, err)
		}
		if err := answer(t, keys, orgB, fmt.Sprint("k", n), "1"); err != nil {
			t.Errorf("replica %d: another organization: %v", n, err)
		}
	}
}

// TestWaitForLeader: a reservation failed at once ("no responders") while the bucket had no leader.
func TestWaitForLeader(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	keys := newKeys(t, conns, once.Config{})
	done := make(chan error, 1)
	go func() { done <- answer(t, keys, orgA, "k", "1") }()
	select {
	case err := <-done:
		t.Fatalf("without a leader: ended with %v, want a wait", err)
	case <-time.After(500 * time.Millisecond):
	}
	if _, err := streams.OpenBuckets(t.Context(), conns, 1); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("with a leader: %v", err)
	}
}
