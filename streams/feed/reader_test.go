package feed

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// read returns the numbers of a reader's events, up to the number last.
func read(tb testing.TB, r *Reader, limit, last int) []int {
	tb.Helper()
	var got []int
	timeout := time.After(time.Minute)
	for len(got) == 0 || got[len(got)-1] < last {
		ready := r.Ready()
		events, err := r.Next(tb.Context(), limit)
		if err != nil {
			tb.Errorf("Next after %v: %v", got, err)
			return got
		}
		if len(events) > limit {
			tb.Errorf("Next returned %d events, want at most %d", len(events), limit)
		}
		got = append(got, numbers(tb, events)...)
		if len(events) > 0 {
			continue
		}
		select {
		case <-ready:
		case <-timeout:
			tb.Errorf("got only %v after a minute, want up to %d", got, last)
			return got
		}
	}
	return got
}

// A reader that stops for a while does not delay other readers. It continues where it stopped, from
// the stream, since the ring no longer has its next event.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	f := start(t, Config{RingEvents: 50})
	const events = 2000
	slow := f.follow(hubA, "")
	var wg sync.WaitGroup
	for range 5 {
		fast := f.follow(hubA, "")
		wg.Go(func() {
			if got := read(t, fast, 100, events); !slices.Equal(got, upTo(1, events)) {
				t.Errorf("a fast reader got %d events, want 1 to %d", len(got), events)
			}
		})
	}
	var last uint64
	for n := 1; n <= events/2; n += 25 {
		last = f.append(hubA, last, n, 25)
	}
	// The slow reader continues while events are appended and the ring drops older ones.
	wg.Go(func() {
		if got := read(t, slow, 30, events); !slices.Equal(got, upTo(1, events)) {
			t.Errorf("the slow reader got %d events, want 1 to %d", len(got), events)
		}
	})
	for n := events/2 + 1; n <= events; n += 25 {
		last = f.append(hubA, last, n, 25)
	}
	wg.Wait()
	if from := f.shard(hubA).tail(hubA).ringFrom; from < events-60 {
		t.Errorf("the ring begins with sequence %d, want at least %d", from, events-60)
	}
}

// A thousand clients that continue at the same time, a hundred events behind, need about as many
// direct gets as one.
func TestThousandReadersResume(t *testing.T) {
	t.Parallel()
	const readers = 1000
	broker := streamstest.New(t)
	last := startOn(t, broker.Connect(t), Config{}).append(hubA, 0, 1, 300)
	f := startOn(t, broker.Connect(t), Config{})
	after := f.page(hubA, "", 200).Next
	gets := testutil.ToFloat64(f.metrics.directGets)
	var wg sync.WaitGroup
	caughtUp := make(chan struct{}, readers)
	for range readers {
		wg.Go(func() {
			r, err := f.Follow(t.Context(), hubA, after)
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Close()
			got := read(t, r, 100, 300)
			caughtUp <- struct{}{}
			got = append(got, read(t, r, 100, 350)...)
			if !slices.Equal(got, upTo(201, 350)) {
				t.Errorf("got %v, want 201 to 350", got)
			}
		})
	}
	for range readers {
		<-caughtUp
	}
	if n := testutil.ToFloat64(f.metrics.directGets) - gets; n > 10 {
		t.Errorf("%v direct gets, want at most 10", n)
	}
	for n := 301; n <= 350; n += 10 {
		last = f.append(hubA, last, n, 10)
	}
	wg.Wait()
	if n := testutil.ToFloat64(f.metrics.readers); n != 0 {
		t.Errorf("%v readers after all were closed, want 0", n)
	}
}

// Readers get events whose commits the tail has missed. The next commit shows a gap; only the check
// of the sweep finds that the last records are missing.
func TestMissedCommits(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	r := f.follow(hubA, "")
	last := f.append(hubA, 0, 1, 10)
	got := read(t, r, 100, 10)
	f.journal.deaf.Store(true)
	last = f.append(hubA, last, 11, 5)
	f.journal.deaf.Store(false)
	last = f.append(hubA, last, 16, 2)
	got = append(got, read(t, r, 100, 17)...)
	if n := testutil.ToFloat64(f.metrics.gaps); n != 1 {
		t.Errorf("%v gaps counted, want 1", n)
	}
	f.journal.deaf.Store(true)
	f.append(hubA, last, 18, 3)
	f.journal.deaf.Store(false)
	got = append(got, read(t, r, 100, 20)...)
	if !slices.Equal(got, upTo(1, 20)) {
		t.Errorf("got %v, want 1 to 20", got)
	}
}

// Readers open and close while events are appended, epochs begin and tails are removed.
func TestReadersOpenAndClose(t *testing.T) {
	t.Parallel()
	f := start(t, Config{TailIdle: time.Millisecond, RingEvents: 20, CacheBytes: 50_000})
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for after := ""; !stop.Load(); {
				page, err := f.Part(t.Context(), hubA, after, 7, unbounded, 5*time.Millisecond)
				if codeOf(err) == domain.CodeCursorExpired {
					after = ""
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if got := numbers(t, page.Events); len(got) > 0 &&
					!slices.Equal(got, upTo(got[0], got[0]+len(got)-1)) {
					t.Errorf("page has %v, want no gap", got)
				}
				after = page.Next
				r, err := f.Follow(t.Context(), hubA, after)
				if err == nil {
					_, err = r.Next(t.Context(), 5)
					r.Close()
				}
				if err != nil && codeOf(err) != domain.CodeCursorExpired {
					t.Error(err)
				}
			}
		})
	}
	var last uint64
	for n := 1; n < 1500; n += 5 {
		last = f.append(hubA, last, n, 5)
		if n%500 == 1 {
			f.begin(hubA, domain.Epoch{ID: domain.NewEpochID(uint32(n)), After: last})
		}
	}
	stop.Store(true)
	wg.Wait()
}

func TestCloseEndsReaders(t *testing.T) {
	t.Parallel()
	logs := start(t, Config{})
	r, err := logs.Follow(t.Context(), hubA, "")
	streamstest.Must(t, err)
	logs.Close()
	<-r.Ready()
	if _, err := r.Next(t.Context(), 1); err != domain.ErrEventsClosed {
		t.Errorf("Next after Close: %v, want domain.ErrEventsClosed", err)
	}
	r.Close()
	if _, err := logs.Page(t.Context(), hubA, "", 1); err != domain.ErrEventsClosed {
		t.Errorf("Page after Close: %v, want domain.ErrEventsClosed", err)
	}
}

// A server that is cut off from one of the accounts that it reads a log with ends its readers.
func TestReadersOfALostConnection(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	for name, nc := range map[string]*nats.Conn{
		"shard": conns.Shards[streams.ShardOf(hubA, len(conns.Shards))], "cloud": conns.Cloud,
	} {
		t.Run(name, func(t *testing.T) {
			var lost atomic.Bool
			f := startOn(t, conns, Config{
				Lost: func(asked *nats.Conn) bool { return asked == nc && lost.Load() },
			})
			r := f.follow(hubA, "")
			lost.Store(true)
			var err error
			for err == nil {
				<-r.Ready()
				_, err = r.Next(t.Context(), 10)
			}
			if !errors.Is(err, ErrLost) {
				t.Errorf("the reader ended with %v, want ErrLost", err)
			}
		})
	}
}
