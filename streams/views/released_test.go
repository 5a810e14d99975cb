package views

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

// What a released hub had recorded took its space until it expired. Now its view is emptied, also
// if the process that writes it learns of the release only at its next start; the records of the
// next organization follow, and nothing brings the former ones back.
func TestReleased(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var released, unknown atomic.Bool
	f.cfg.IsReleased = func(_ context.Context, id domain.HubID) (bool, error) {
		if unknown.Load() {
			return false, errors.New("the directory does not answer")
		}
		return released.Load() && id == hub(1), nil
	}
	f.start()
	f.commit(hub(1), hub(2), hub(1))
	f.flush()
	unknown.Store(true)
	f.Released(hub(1))
	f.awaitRetry()
	f.check(hub(1), 1)
	unknown.Store(false)
	released.Store(true)
	f.stop()
	f.start()
	f.awaitFirst(hub(1), 3)
	released.Store(false)
	f.commit(hub(1), hub(2))
	f.flush()
	f.check(hub(1), 3)
	f.check(hub(2), 1)
	released.Store(true)
	f.Released(hub(1))
	f.awaitFirst(hub(1), 4)
	released.Store(false)
	f.commit(hub(1))
	f.flush()
	f.check(hub(1), 4)
	f.stop()
	f.start()
	f.commit(hub(1))
	f.flush()
	f.check(hub(1), 4)
}

// awaitRetry waits until a repair has failed.
func (f *fixture) awaitRetry() {
	f.Helper()
	streamstest.Eventually(f, "a repair is to be tried again", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.retries) > 0
	})
}

// awaitFirst waits until the view of a hub begins with a sequence.
func (f *fixture) awaitFirst(hub domain.HubID, first uint64) {
	f.Helper()
	streamstest.EventuallyNil(f, "the view of "+string(hub)+" begins anew", func() error {
		info, err := jsapi.New(f.nc(hub)).Info(f.Context(), streams.HubStream(hub))
		if err == nil && info.State.FirstSeq != first {
			err = fmt.Errorf("it begins with %d, want %d", info.State.FirstSeq, first)
		}
		return err
	})
}
