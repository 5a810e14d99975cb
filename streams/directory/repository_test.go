package directory_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/directory"
	"hubcloud/streams/streamstest"
)

// history is an aggregate whose state is the list of its names.
type history []string

func evolveHistory(h history, e domain.Event) (history, error) {
	fact, err := e.Fact()
	if err != nil {
		return h, err
	}
	return append(h[:len(h):len(h)], fact.(domain.SiteRenamed).Name), nil
}

func histories(log *directory.Log, size int) *directory.Repository[history] {
	return directory.NewRepository(
		log, func(id string) string { return streams.SiteSubject("o", id) }, evolveHistory, size,
	)
}

func addName(name string) func(history) ([]domain.Event, error) {
	return func(history) ([]domain.Event, error) { return []domain.Event{renamed(name)}, nil }
}

// TestConcurrentUpdatesLoseNothing checks that every change is decided with the state that it
// follows.
func TestConcurrentUpdatesLoseNothing(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	const replicas, each = 4, 25
	var wg sync.WaitGroup
	for replica := range replicas {
		r := histories(open(t, broker.Connect(t)), 10)
		wg.Go(func() {
			for i := range each {
				_, _, err := r.Update(t.Context(), "s", func(h history) ([]domain.Event, error) {
					return []domain.Event{renamed(fmt.Sprintf("%d after %d", replica, len(h)))}, nil
				})
				if err != nil {
					t.Errorf("replica %d, change %d: %v", replica, i, err)
				}
			}
		})
	}
	wg.Wait()
	h, _, err := histories(open(t, broker.Connect(t)), 10).Get(t.Context(), "s")
	if err != nil || len(h) != replicas*each {
		t.Fatalf("got %d changes, %v", len(h), err)
	}
	for i, name := range h {
		if !strings.HasSuffix(name, fmt.Sprintf(" after %d", i)) {
			t.Errorf("change %d was decided as %s: with another state", i, name)
		}
	}
}

// TestUpdatesOfOneProcessDoNotConflict: a hundred concurrent updates of one process conflicted with
// each other, so that each decided some ten times.
func TestUpdatesOfOneProcessDoNotConflict(t *testing.T) {
	t.Parallel()
	r := histories(open(t, streamstest.Start(t)), 10)
	const changes = 100
	var decisions atomic.Int64
	fns := make([]func() error, changes)
	for i := range fns {
		fns[i] = func() error {
			_, _, err := r.Update(t.Context(), "s", func(history) ([]domain.Event, error) {
				decisions.Add(1)
				return []domain.Event{renamed(fmt.Sprint(i))}, nil
			})
			return err
		}
	}
	streamstest.Must(t, errors.Join(race(fns...)...))
	// On a busy machine updates may take longer than others wait for them.
	if n := decisions.Load(); n > 3*changes {
		t.Errorf("%d changes took %d decisions, want about one each", changes, n)
	}
}

// TestStuckUpdateDelaysOthersBriefly checks that an update that hangs delays others for
// lockTimeout, and that a caller that goes away does not wait.
func TestStuckUpdateDelaysOthersBriefly(t *testing.T) {
	t.Parallel()
	r := histories(open(t, streamstest.Start(t)), 10)
	stuck, release := make(chan struct{}), make(chan struct{})
	var first sync.WaitGroup
	first.Go(func() {
		asked := false
		_, _, err := r.Update(t.Context(), "s", func(history) ([]domain.Event, error) {
			if !asked {
				asked = true
				close(stuck)
				<-release
			}
			return []domain.Event{renamed("first")}, nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-stuck
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := r.Update(ctx, "s", addName("gone")); !errors.Is(err, context.Canceled) {
		t.Errorf("after the caller went away: got %v", err)
	}
	if _, _, err := r.Update(t.Context(), "other", addName("elsewhere")); err != nil {
		t.Error(err)
	}
	if h, _, err := r.Update(t.Context(), "s", addName("second")); err != nil || len(h) != 1 {
		t.Errorf("got %v, %v", h, err)
	}
	close(release)
	first.Wait()
	if h, _, err := r.Get(t.Context(), "s"); err != nil || len(h) != 2 || h[1] != "first" {
		t.Errorf("got %v, %v", h, err)
	}
}

// TestRepositoryEvictsLeastRecentlyUsed also checks that cached and uncached aggregates are the
// same.
func TestRepositoryEvictsLeastRecentlyUsed(t *testing.T) {
	t.Parallel()
	log := open(t, streamstest.Start(t))
	folded := map[string]int{}
	r := directory.NewRepository(
		log,
		func(id string) string { return streams.SiteSubject("o", id) },
		func(_ string, e domain.Event) (string, error) {
			fact, err := e.Fact()
			if err != nil {
				return "", err
			}
			name := fact.(domain.SiteRenamed).Name
			folded[name]++
			return name, nil
		},
		2,
	)
	for _, id := range []string{"a", "b", "c"} {
		appendTo(t, log, streams.SiteSubject("o", id), 0, renamed(id))
	}
	for _, id := range []string{"a", "b", "a", "c", "a", "b"} { // c pushes b out
		if got, _, err := r.Get(t.Context(), id); got != id || err != nil {
			t.Fatalf("aggregate %s: got %s, %v", id, got, err)
		}
	}
	if folded["a"] != 1 || folded["b"] != 2 || folded["c"] != 1 {
		t.Errorf("got folded events %v", folded)
	}
}
