package feed

import (
	"bytes"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// A page after the cursor of a time begins with the first event stored since.
func TestAt(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	begun := time.Now()
	last := f.append(hubA, 0, 1, 3)
	between := time.Now().Add(2 * time.Millisecond)
	streamstest.Eventually(
		t, "a few milliseconds pass",
		func() bool { return time.Now().After(between.Add(2 * time.Millisecond)) },
	)
	f.append(hubA, last, 4, 3)
	for at, want := range map[time.Time][]int{
		begun.Add(-2 * time.Hour):                         upTo(1, 6),
		begun.Add(-time.Minute):                           upTo(1, 6),
		between.Truncate(time.Millisecond):                upTo(4, 6),
		time.Now().Add(time.Minute).Truncate(time.Second): {},
	} {
		f.want("events since a time", f.at(at), want)
		// Since has a cursor in any case, for readers that would begin with the next new event.
		after, err := f.Since(t.Context(), hubA, at)
		if err != nil || after == "" {
			t.Fatalf("Since %v: got %q, %v, want a cursor", at, after, err)
		}
		if got := f.caughtUp(after); !slices.Equal(got, want) {
			t.Errorf("a reader since %v got %v, want %v", at, got, want)
		}
	}
	for n, want := range map[int][]int{1: upTo(6, 6), 4: upTo(3, 6), 500: upTo(1, 6)} {
		before, err := f.Last(t.Context(), hubA, n)
		streamstest.Must(t, err)
		if got := f.caughtUp(before); !slices.Equal(got, want) {
			t.Errorf("the last %d events are %v, want %v", n, got, want)
		}
	}
	_, err := f.At(t.Context(), "hub-none-none-none", begun)
	if codeOf(err) != domain.CodeNotFound {
		t.Errorf("At of a hub without an organization: %v, want not_found", err)
	}
}

// An empty answer from a copy that was behind the leader made At return the log's end, so that the
// reader missed the events stored since. A copy that stays behind costs nothing: the journal has
// what it lacks.
func TestAtAsksTheLeader(t *testing.T) {
	t.Parallel()
	for _, empty := range []int32{3, 1 << 30} {
		broker := streamstest.New(t)
		answers := streamstest.NewRewriter(broker)
		var sent atomic.Int32
		answers.ChangeHeader(func(header []byte) []byte {
			// Only messages of a direct get have this header.
			if !bytes.Contains(header, []byte("\r\nNats-Num-Pending:")) ||
				bytes.HasPrefix(header, []byte("NATS/1.0 204")) || sent.Add(1) > empty {
				return header
			}
			return []byte("NATS/1.0 404 Message Not Found\r\n\r\n")
		})
		f := startOn(t, broker.Connect(t, nats.InProcessServer(answers)), Config{})
		f.append(hubA, 0, 1, 3)
		f.want("events since a minute ago", f.at(time.Now().Add(-time.Minute)), upTo(1, 3))
	}
}

// at returns the cursor of a time in hubA's log.
func (f *fixture) at(at time.Time) string {
	f.tb.Helper()
	after, err := f.At(f.tb.Context(), hubA, at)
	if err != nil {
		f.tb.Fatalf("At %v: %v", at, err)
	}
	return after
}

// caughtUp returns the numbers of the events that a reader of hubA gets until it has caught up.
func (f *fixture) caughtUp(after string) []int {
	f.tb.Helper()
	r := f.follow(hubA, after)
	reached, err := r.CaughtUp(f.tb.Context())
	streamstest.Must(f.tb, err)
	got := []int{}
	for !reached() {
		events, err := r.Next(f.tb.Context(), 2)
		streamstest.Must(f.tb, err)
		got = append(got, numbers(f.tb, events)...)
	}
	return got
}
