package feed

import (
	"fmt"
	"testing"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// The events after a cursor are counted without the records of commands, whether the ring has them
// or not, and also for a process that began later. Lag counts what its process has received, which
// may take another process a moment.
func TestLag(t *testing.T) {
	t.Parallel()
	f := start(t, Config{RingEvents: 10})
	last := f.append(hubA, 0, 1, 40)
	f.command(hubA)
	f.command(hubA)
	last = f.append(hubA, last, 41, 10)
	f.command(hubA)
	late := startOn(t, f.conns, Config{RingEvents: 10})
	check := func(after string, want uint64) {
		t.Helper()
		for name, l := range map[string]*fixture{"the writer": f, "another process": late} {
			streamstest.EventuallyNil(t, "the lag at "+name+" is right", func() error {
				lag, err := l.Lag(t.Context(), hubA, after)
				if err == nil && lag.Behind != want {
					err = fmt.Errorf("Lag: got %d events, want %d", lag.Behind, want)
				}
				return err
			})
		}
	}
	after := ""
	for read := uint64(5); read <= 50; read += 5 {
		page := f.page(hubA, after, 5)
		if page.Lag.Behind != 50-read || page.Lag.At.IsZero() {
			t.Errorf("page after %q: lag is %+v, want %d events", after, page.Lag, 50-read)
		}
		after = page.Next
		check(after, 50-read)
	}
	// What follows is received, and leaves the ring.
	for range 3 {
		f.command(hubA)
	}
	last = f.append(hubA, last, 51, 30)
	f.command(hubA)
	check(after, 30)

	r := f.follow(hubA, after)
	if events, err := r.Next(t.Context(), 7); err != nil || len(events) != 7 {
		t.Fatalf("Next(7): got %d events, %v, want 7", len(events), err)
	}
	if lag := r.Lag(t.Context()); lag.Behind != 23 {
		t.Errorf("Reader.Lag after 7 of 30 events: got %d, want 23", lag.Behind)
	}

	f.begin(hubA, domain.Epoch{ID: domain.NewEpochID(0xb), After: last + 1})
	if _, err := f.Lag(t.Context(), hubA, after); codeOf(err) != domain.CodeCursorExpired {
		t.Errorf("Lag of a cursor of the former log: got %v, want cursor_expired", err)
	}
}
