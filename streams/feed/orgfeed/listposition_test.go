package orgfeed

import (
	"context"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
)

// A list that lacks the newest events of a group, which was idle before, would get a position that
// expires at once if its position were that of the group's last record before them.
func TestListPositionOfAnIdleGroup(t *testing.T) {
	t.Parallel()
	f := start(t, Config{Retention: time.Minute})
	hub := hubN(1)
	f.add(hub, "org", "north")
	f.append(hub, "channel.observed", 3)
	calls := 0
	position, err := f.ListPosition(t.Context(), "org", func(context.Context) ([]int64, error) {
		times := make([]int64, f.groups)
		if calls++; calls > 1 {
			for g := range times {
				times[g] = time.Now().UnixNano()
			}
		}
		return times, nil
	})
	streamstest.Must(t, err)
	if calls < 2 {
		t.Errorf("ListPosition() looked %d times how far the list is, want 2 or more", calls)
	}
	if events := f.next(f.follow(everything, position), 10); len(events) != 3 {
		t.Errorf("got %d events from the position of a list, want the 3 of the last seconds", len(events))
	}
}
