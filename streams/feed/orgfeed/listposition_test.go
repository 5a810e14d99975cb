package orgfeed

import (
	"context"
	"slices"
	"testing"
	"time"

	"hubcloud/domain"
)

func TestPositionBefore(t *testing.T) {
	t.Parallel()
	const at = int64(1_000_000) // milliseconds
	nanos := func(ms int64) int64 { return ms * int64(time.Millisecond) }
	for name, c := range map[string]struct {
		times, ends []int64
		want        Position
	}{
		"a list that has everything": {
			times: []int64{nanos(5000), nanos(7000)}, ends: []int64{nanos(5000), nanos(7000)},
			want: Position{at, []int64{nanos(5000), nanos(7000)}},
		},
		"no record yet": {
			times: []int64{0, 0}, ends: []int64{0, 0}, want: Position{at, []int64{0, 0}},
		},
		"a group that is behind": {
			times: []int64{nanos(980_000), nanos(7000)}, ends: []int64{nanos(999_000), 0},
			want: Position{980_000, []int64{nanos(980_000), nanos(7000)}},
		},
		"records of the last seconds": {
			times: []int64{nanos(999_500)}, ends: []int64{nanos(999_500)},
			want: Position{995_000, []int64{nanos(995_000)}},
		},
	} {
		got := positionBefore(at, c.times, c.ends, 5*time.Second)
		if got.Complete != c.want.Complete || !slices.Equal(got.Times, c.want.Times) {
			t.Errorf("%s: positionBefore() = %v, want %v", name, got, c.want)
		}
	}
}

// A list that lacks the newest events of a group, which was idle before, would get a position that
// expires at once if its position were that of the group's last record before them.
func TestListPositionOfAnIdleGroup(t *testing.T) {
	t.Parallel()
	f := start(t, Config{Retention: time.Minute})
	hub := hubN(1)
	f.add(hub, "acme", "north")
	f.append(hub, "channel.observed", 3)
	calls := 0
	position, err := f.ListPosition(t.Context(), "acme", func(context.Context) ([]int64, error) {
		times := make([]int64, f.groups)
		if calls++; calls > 1 {
			for g := range times {
				times[g] = time.Now().UnixNano()
			}
		}
		return times, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if calls < 2 {
		t.Errorf("ListPosition() looked %d times how far the list is, want 2 or more", calls)
	}
	reader, err := f.Follow(t.Context(), "acme", domain.EventFilter{}, position)
	if err != nil {
		t.Fatalf("Follow() from the position of a list: %v", err)
	}
	defer reader.Close()
	events, err := reader.Next(t.Context(), 10)
	if err != nil || len(events) != 3 {
		t.Errorf("Next() = %d events, %v; want the 3 of the last seconds", len(events), err)
	}
}
