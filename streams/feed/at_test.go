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
		after, err := f.At(t.Context(), hubA, at)
		if err != nil {
			t.Fatal(err)
		}
		if got := numbers(t, f.page(hubA, after, 10).Events); !slices.Equal(got, want) {
			t.Errorf("events since %v are %v, want %v", at, got, want)
		}
		// Since has a cursor in any case, for readers that would begin with the next new event.
		if got := f.caughtUp(f.since(hubA, at)); !slices.Equal(got, want) {
			t.Errorf("a reader since %v got %v, want %v", at, got, want)
		}
	}
	for n, want := range map[int][]int{1: upTo(6, 6), 4: upTo(3, 6), 500: upTo(1, 6)} {
		before, err := f.Last(t.Context(), hubA, n)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.caughtUp(before); !slices.Equal(got, want) {
			t.Errorf("the last %d events are %v, want %v", n, got, want)
		}
	}
	_, err := f.At(t.Context(), "hub-none-none-none", begun)
	if codeOf(err) != domain.CodeNotFound {
		t.Errorf("At of a hub without an organization: %v, want not_found", err)
	}
}

func (f *fixture) since(hub domain.HubID, at time.Time) string {
	f.tb.Helper()
	after, err := f.Since(f.tb.Context(), hub, at)
	if err != nil || after == "" {
		f.tb.Fatalf("Since %v: got %q, %v, want a cursor", at, after, err)
	}
	return after
}

// caughtUp returns the numbers of the events that a reader of hubA gets until it has caught up.
func (f *fixture) caughtUp(after string) []int {
	f.tb.Helper()
	r, err := f.Follow(f.tb.Context(), hubA, after)
	if err != nil {
		f.tb.Fatal(err)
	}
	defer r.Close()
	reached, err := r.CaughtUp(f.tb.Context())
	if err != nil {
		f.tb.Fatal(err)
	}
	got := []int{}
	for !reached() {
		events, err := r.Next(f.tb.Context(), 2)
		if err != nil {
			f.tb.Fatal(err)
		}
		got = append(got, numbers(f.tb, events)...)
	}
	return got
}

// TestAtBeforeReset asks for the events since a time before the hub was reset. If At
// returned the log's end then, the reader would miss the events of the new epoch.
func TestAtBeforeReset(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	begun := time.Now()
	last := f.append(hubA, 0, 1, 3)
	f.begin(hubA, domain.Epoch{ID: domain.NewEpochID(0xb), After: last})
	f.append(hubA, last, 4, 3)
	after, err := f.At(t.Context(), hubA, begun.Add(-time.Minute))
	if err != nil {
		t.Fatalf("At: %v", err)
	}
	if got := numbers(t, f.page(hubA, after, 10).Events); !slices.Equal(got, upTo(4, 6)) {
		t.Errorf("events since a time before the reset are %v, want 4 to 6", got)
	}
}

// startWithStaleCopy returns Logs whose direct gets are answered by a copy of the stream that has
// no message, for that many answers.
func startWithStaleCopy(t *testing.T, empty int32) *fixture {
	t.Helper()
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
	return startOn(t, broker.Connect(t, nats.InProcessServer(answers)), Config{})
}

// An empty answer from a copy that was behind the leader made At return the log's end, so that the
// reader missed the events stored since.
func TestAtAsksTheLeader(t *testing.T) {
	t.Parallel()
	f := startWithStaleCopy(t, 3)
	f.append(hubA, 0, 1, 3)
	after, err := f.At(t.Context(), hubA, time.Now().Add(-time.Minute))
	if err != nil {
		t.Fatalf("At: %v", err)
	}
	if got := numbers(t, f.page(hubA, after, 10).Events); !slices.Equal(got, upTo(1, 3)) {
		t.Errorf("events since a minute ago are %v, want 1 to 3", got)
	}
}

// A copy that stays behind costs nothing: the journal has what it lacks.
func TestAtWhileTheCopyStaysBehind(t *testing.T) {
	t.Parallel()
	f := startWithStaleCopy(t, 1<<30)
	f.append(hubA, 0, 1, 3)
	after, err := f.At(t.Context(), hubA, time.Now().Add(-time.Minute))
	if err != nil {
		t.Fatalf("At: %v", err)
	}
	if got := numbers(t, f.page(hubA, after, 10).Events); !slices.Equal(got, upTo(1, 3)) {
		t.Errorf("events since a minute ago are %v, want 1 to 3", got)
	}
}
