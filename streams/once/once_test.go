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

// newKeys returns the keys of another process, and its connections.
func newKeys(
	t *testing.T, broker *streamstest.Broker, replicaID string, maxPerOrg int,
) (*once.Keys, *streams.Conns) {
	t.Helper()
	conns := broker.Connect(t)
	keys, err := once.New(conns, once.Config{
		ReplicaID: replicaID, MaxPerOrg: maxPerOrg, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(keys.Close)
	return keys, conns
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
	keys, err := once.New(broker.Connect(t), once.Config{
		ReplicaID: "r1", MaxBytesPerOrg: 10_000, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(keys.Close)
	answer := fmt.Appendf(nil, `{"text":%q}`, strings.Repeat("x", 4000))
	reserve := func(org, key string) (*once.Reservation, error) {
		return keys.Reserve(t.Context(), once.Request{
			OrgID: org, Name: once.Name(org, key), Fingerprint: "f", Hold: time.Minute,
		})
	}
	for n := range 3 {
		r, err := reserve("a", fmt.Sprint(n))
		if err != nil {
			t.Fatalf("key %d: %v", n, err)
		}
		if _, err := keys.Finish(t.Context(), r, answer); err != nil {
			t.Fatal(err)
		}
	}
	_, err = reserve("a", "next")
	wantCode(t, err, domain.CodeRateLimited)
	if r, err := reserve("a", "1"); err != nil || len(r.Answer) == 0 {
		t.Errorf("a key with an answer: got %v, want the answer", err)
	}
	if _, err := reserve("b", "1"); err != nil {
		t.Errorf("another organization: %v", err)
	}
}

// TestOnce: a client that repeated POST /v1/sites after a lost answer created two sites. Of
// concurrent duplicates at two replicas one runs, and all get its answer.
func TestOnce(t *testing.T) {
	t.Parallel()
	broker := newBroker(t)
	one, _ := newKeys(t, broker, "r1", 0)
	two, _ := newKeys(t, broker, "r2", 0)
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
	broker := newBroker(t)
	keys, _ := newKeys(t, broker, "r1", 0)
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
		_, _, err := keys.Once(
			t.Context(),
			orgA,
			name,
			nil,
			func(_ context.Context, id string) ([]byte, error) {
				ids = append(ids, id)
				return nil, tc.err
			},
		)
		if !errors.Is(err, tc.err) {
			t.Errorf("%s: the first run returned %v", name, err)
		}
		got, replayed, err := keys.Once(
			t.Context(),
			orgA,
			name,
			nil,
			func(_ context.Context, id string) ([]byte, error) {
				ids = append(ids, id)
				return []byte(`"done"`), nil
			},
		)
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
	killed, conns := newKeys(t, broker, "r1", 0)
	var made string
	_, _, err := killed.Once(
		t.Context(),
		orgA,
		"k",
		nil,
		func(_ context.Context, id string) ([]byte, error) {
			made = id
			conns.Close()
			return []byte(`"lost"`), nil
		},
	)
	if err == nil {
		t.Error("an answer that is not stored was returned")
	}
	other, _ := newKeys(t, broker, "r2", 0)
	began := time.Now()
	got, _, err := other.Once(
		t.Context(),
		orgA,
		"k",
		nil,
		func(_ context.Context, id string) ([]byte, error) {
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
	one, _ := newKeys(t, broker, "r1", most)
	two, _ := newKeys(t, broker, "r2", most)
	run := func(keys *once.Keys, org, key string) error {
		_, _, err := keys.Once(
			t.Context(), org, key, nil,
			func(context.Context, string) ([]byte, error) { return []byte(`1`), nil },
		)
		return err
	}
	for n := range most {
		keys := []*once.Keys{one, two}[n%2]
		if err := run(keys, orgA, fmt.Sprint("k", n)); err != nil {
			t.Fatalf("key %d of %d: %v", n, most, err)
		}
	}
	for n, keys := range []*once.Keys{one, two} {
		err := run(keys, orgA, "one too many")
		wantCode(t, err, domain.CodeRateLimited)
		var rejected *domain.Error
		if errors.As(err, &rejected) && rejected.RetryAfter <= 0 {
			t.Error("rate_limited without RetryAfter")
		}
		if err := run(keys, orgA, "k0"); err != nil {
			t.Errorf("replica %d: a reserved key: %v", n, err)
		}
		if err := run(keys, orgB, fmt.Sprint("k", n)); err != nil {
			t.Errorf("replica %d: another organization: %v", n, err)
		}
	}
}

// TestWaitForLeader: a reservation failed at once ("no responders") while the bucket had no leader.
func TestWaitForLeader(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	keys, conns := newKeys(t, broker, "r1", 0)
	done := make(chan error, 1)
	go func() {
		_, _, err := keys.Once(
			t.Context(), orgA, "k", nil,
			func(context.Context, string) ([]byte, error) { return []byte(`1`), nil },
		)
		done <- err
	}()
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
