package directory_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/directory"
	"hubcloud/streams/streamstest"
)

// Replay delivers every event of a range once and in order, wherever in a batch the range begins
// and ends, and no event after it.
func TestReplay(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	log := open(t, conns)
	const head = 4321
	fill(t, conns, 1, head)
	for _, span := range [][2]uint64{
		{0, head}, {0, 1}, {999, 1000}, {1000, 2001}, {17, 3500}, {head - 1, head}, {7, 7}, {9, 3},
	} {
		next := span[0] + 1
		err := log.Replay(t.Context(), span[0], span[1], func(batch []directory.Recorded) error {
			return checkBatch(&next, batch)
		})
		if err != nil || next != max(span[0], span[1])+1 {
			t.Errorf("Replay(%d, %d): next event is %d, error %v", span[0], span[1], next, err)
		}
	}
	stop := func([]directory.Recorded) error { return errEnough }
	if err := log.Replay(t.Context(), 0, head+1, stop); !errors.Is(err, directory.ErrBeyondEnd) {
		t.Errorf("Replay beyond the end: got %v, want ErrBeyondEnd", err)
	}
	if err := log.Replay(t.Context(), 0, head, stop); !errors.Is(err, errEnough) {
		t.Errorf("Replay with a failing fn: got %v, want fn's error", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := log.Replay(ctx, 0, head, stop); !errors.Is(err, context.Canceled) {
		t.Errorf("Replay with a canceled context: got %v, want context.Canceled", err)
	}
}

// A skip is recorded once, and found even if the projection's subject has an unreadable event.
func TestSkip(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	log := open(t, conns)
	skip := domain.ProjectionSkipped{Projection: "directory", Sequence: 7, Why: "a test"}
	for range 3 {
		if err := log.Skip(t.Context(), origin, skip); err != nil {
			t.Fatal(err)
		}
	}
	if head, err := log.Head(t.Context(), 0); err != nil || head != 1 {
		t.Errorf("Head after three equal skips: got %d, %v, want 1", head, err)
	}
	store(t, conns, streams.ProjectionSubject("directory"), "rubbish")
	other := skip
	other.Sequence = 2
	if err := log.Skip(t.Context(), origin, other); err != nil {
		t.Fatal(err)
	}
	skips, err := log.Skips(t.Context(), "directory")
	if err != nil || len(skips) != 2 || skips[7] != skip || skips[2] != other {
		t.Errorf("Skips: got %v, %v, want %v and %v", skips, err, skip, other)
	}
	if skips, err := log.Skips(t.Context(), "presence"); err != nil || len(skips) != 0 {
		t.Errorf("Skips of another projection: got %v, %v, want none", skips, err)
	}
	event, ok, err := log.At(t.Context(), 2)
	if err != nil || !ok || event.Seq != 2 || event.Err == nil ||
		event.Subject != streams.ProjectionSubject("directory") ||
		time.Since(event.StoredAt) > time.Minute {
		t.Errorf("At an unreadable event: got %+v, %v, %v", event, ok, err)
	}
	if _, ok, err := log.At(t.Context(), 4); ok || err != nil {
		t.Errorf("At after the end: got %v, %v, want false", ok, err)
	}
}
