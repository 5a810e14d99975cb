package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hubcloud/domain"
	"hubcloud/hubbridge/idempotency"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }

const (
	orgA = "01935f2e-0000-7000-8000-00000000000a"
	orgB = "01935f2e-0000-7000-8000-00000000000b"
)

// installation is a broker with the bucket of idempotency keys.
type installation struct {
	t      *testing.T
	broker *streamstest.Broker
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	i := &installation{t, streamstest.New(t)}
	if _, err := streams.OpenBuckets(t.Context(), i.broker.Connect(t), 1); err != nil {
		t.Fatal(err)
	}
	return i
}

// replica returns the keys of another process, and what it is connected by.
func (i *installation) replica(id string, maxPerOrg int) (*idempotency.Keys, *streams.Conns) {
	i.t.Helper()
	conns := i.broker.Connect(i.t)
	keys := idempotency.New(
		conns,
		idempotency.Config{ReplicaID: id, MaxPerOrg: maxPerOrg, Log: slog.New(slog.DiscardHandler)},
	)
	i.t.Cleanup(keys.Close)
	return keys, conns
}

func wantCode(t *testing.T, err error, code domain.Code) {
	t.Helper()
	if err == nil || domain.CodeOf(err) != code {
		t.Errorf("%v, want %s", err, code)
	}
}

// TestOnce: a client that repeated POST /v1/sites after a lost answer made two sites. Of twins at
// two replicas one is done, and all get its answer.
func TestOnce(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	one, _ := i.replica("r1", 0)
	two, _ := i.replica("r2", 0)
	var done atomic.Int32
	do := func(context.Context, string) ([]byte, error) {
		return fmt.Appendf(nil, `{"n":%d}`, done.Add(1)), nil
	}
	var twins sync.WaitGroup
	for n := range 40 {
		keys := []*idempotency.Keys{one, two}[n%2]
		twins.Go(func() {
			if got, err := keys.Once(t.Context(), orgA, "k", []byte("request"), do); err != nil ||
				string(got) != `{"n":1}` {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
	twins.Wait()
	_, err := two.Once(t.Context(), orgA, "k", []byte("another request"), do)
	wantCode(t, err, domain.CodeIdempotencyConflict)
	if got, err := one.Once(t.Context(), orgB, "k", []byte("request"), do); err != nil ||
		string(got) != `{"n":2}` {
		t.Errorf("of another organization: %s, %v", got, err)
	}
}

// TestWhatIsRemembered: an error that settles the matter is answered again; after any other the
// same request is done, under the same id.
func TestWhatIsRemembered(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	keys, _ := i.replica("r1", 0)
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
		_, err := keys.Once(
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
			t.Errorf("%s: first answered with %v", name, err)
		}
		got, err := keys.Once(
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
		case tc.remembered:
			if !errors.Is(err, tc.err) || len(ids) != 1 {
				t.Errorf("%s: then %s, %v, done as %v", name, got, err, ids)
			}
		case err != nil || string(got) != `"done"` || len(ids) != 2 || ids[0] != ids[1] || !domain.IsUUID(ids[0]):
			t.Errorf("%s: then %s, %v, done as %v, want twice as one UUID", name, got, err, ids)
		}
	}
}

// TestKilledInBetween: what was stored before its process was killed, and whose answer was not, is
// found again by its id.
func TestKilledInBetween(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	killed, conns := i.replica("r1", 0)
	var made string
	_, err := killed.Once(
		t.Context(),
		orgA,
		"k",
		nil,
		func(_ context.Context, id string) ([]byte, error) {
			made = id
			conns.Close()
			return []byte(`"never heard"`), nil
		},
	)
	if err == nil {
		t.Error("an answer that is not stored was given")
	}
	other, _ := i.replica("r2", 0)
	began := time.Now()
	got, err := other.Once(
		t.Context(),
		orgA,
		"k",
		nil,
		func(_ context.Context, id string) ([]byte, error) {
			if id != made {
				t.Errorf("made as %s, then as %s", made, id)
			}
			return []byte(`"found"`), nil
		},
	)
	if err != nil || string(got) != `"found"` || time.Since(began) > 20*time.Second {
		t.Errorf("%s, %v, after %v", got, err, time.Since(began))
	}
}

// TestKeysAreBounded: an organization could make the broker remember keys without end.
func TestKeysAreBounded(t *testing.T) {
	t.Parallel()
	const most = 20
	i := newInstallation(t)
	one, _ := i.replica("r1", most)
	two, _ := i.replica("r2", most)
	once := func(keys *idempotency.Keys, org, key string) error {
		_, err := keys.Once(
			t.Context(), org, key, nil,
			func(context.Context, string) ([]byte, error) { return []byte(`1`), nil },
		)
		return err
	}
	for n := range most {
		keys := []*idempotency.Keys{one, two}[n%2]
		if err := once(keys, orgA, fmt.Sprint("k", n)); err != nil {
			t.Fatalf("key %d of %d: %v", n, most, err)
		}
	}
	for n, keys := range []*idempotency.Keys{one, two} {
		err := once(keys, orgA, "one too many")
		wantCode(t, err, domain.CodeRateLimited)
		var refused *domain.Error
		if errors.As(err, &refused) && refused.RetryAfter <= 0 {
			t.Error("no RetryAfter")
		}
		if err := once(keys, orgA, "k0"); err != nil {
			t.Errorf("replica %d: a key that is remembered: %v", n, err)
		}
		if err := once(keys, orgB, fmt.Sprint("k", n)); err != nil {
			t.Errorf("replica %d: another organization: %v", n, err)
		}
	}
}

// TestWaitsForALeader: a reservation failed at once while the bucket had no leader ("no
// responders").
func TestWaitsForALeader(t *testing.T) {
	t.Parallel()
	i := &installation{t, streamstest.New(t)}
	keys, conns := i.replica("r1", 0)
	done := make(chan error, 1)
	asked := make(chan struct{})
	go func() {
		close(asked)
		_, err := keys.Once(
			t.Context(), orgA, "k", nil,
			func(context.Context, string) ([]byte, error) { return []byte(`1`), nil },
		)
		done <- err
	}()
	<-asked
	select {
	case err := <-done:
		t.Fatalf("nobody answers for the bucket: %v", err)
	case <-time.After(time.Second):
	}
	if _, err := streams.OpenBuckets(t.Context(), conns, 1); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("once somebody answers: %v", err)
	}
}
