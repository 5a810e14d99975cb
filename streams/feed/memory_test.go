package feed

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// All rings together stay within RingBytes, also if some were filled before others were created.
// Readers still get every event.
func TestRingsShareRingBytes(t *testing.T) {
	t.Parallel()
	const hubs, events, limit = 20, 200, 100_000
	f := start(t, Config{RingBytes: limit})
	var wg sync.WaitGroup
	for i := range hubs {
		hub := domain.HubID(fmt.Sprintf("hub-aaaa-bbbb-%04d", i))
		f.begin(hub, domain.Epoch{ID: domain.NewEpochID(uint32(i + 1))})
		r := f.follow(hub, "")
		var last uint64
		for n := 1; n <= events; n += 50 {
			last = f.append(hub, last, n, 50)
		}
		wg.Go(func() {
			if got := read(t, r, 100, events); !slices.Equal(got, upTo(1, events)) {
				t.Errorf("%s: got %d events, want 1 to %d", hub, len(got), events)
			}
		})
	}
	wg.Wait()
	streamstest.Eventually(
		t, "the rings stay within RingBytes", func() bool { return f.rings.used.Load() <= limit },
	)
}

// A tail without readers is removed after TailIdle, and its events no longer count towards
// RingBytes.
func TestIdleTailsAreRemoved(t *testing.T) {
	t.Parallel()
	f := start(t, Config{TailIdle: 50 * time.Millisecond})
	r, err := f.Follow(t.Context(), hubA, "")
	streamstest.Must(t, err)
	f.append(hubA, 0, 1, 10)
	read(t, r, 100, 10)
	r.Close()
	r.Close()
	streamstest.Eventually(t, "the tail is removed", func() bool {
		return f.shard(hubA).tail(hubA) == nil && f.rings.used.Load() == 0 &&
			f.rings.rings.Load() == 0
	})
	f.want("page", "", upTo(1, 10))
}

// An idle reader of a stream costs little memory and no goroutine.
func TestIdleReadersAreSmall(t *testing.T) {
	const readers = 5000
	f := start(t, Config{})
	f.append(hubA, 0, 1, 10)
	first := f.follow(hubA, "")
	var before, after runtime.MemStats
	goroutines := runtime.NumGoroutine()
	runtime.GC()
	runtime.ReadMemStats(&before)
	all := make([]*Reader, 0, readers)
	for range readers {
		r, err := f.Follow(t.Context(), hubA, first.Cursor())
		streamstest.Must(t, err)
		defer r.Close()
		r.Ready()
		all = append(all, r)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if each := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / readers; each > 400 {
		t.Errorf("an idle reader has %d bytes, want at most 400", each)
	}
	// Those of the broker and of the journal come and go meanwhile.
	if more := runtime.NumGoroutine() - goroutines; more > readers/50 {
		t.Errorf("%d readers have %d goroutines, want at most %d", len(all), more, readers/50)
	}
}
