package directory_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/directory"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

var origin = domain.Origin{
	At:    time.Now().UTC().Truncate(time.Microsecond), // invitations of a fixed time would expire
	Actor: domain.Actor{Kind: domain.ActorOperator},
}

const subject = "directory.site.o.s"

func renamed(name string) domain.Event {
	return domain.Record(origin, domain.SiteRenamed{OrgID: "o", SiteID: "s", Name: name})
}

func open(t testing.TB, conns *streams.Conns) *directory.Log {
	t.Helper()
	log, err := directory.Open(t.Context(), conns, 1)
	streamstest.Must(t, err)
	return log
}

func appendTo(
	t testing.TB, log *directory.Log, subject string, expected uint64, events ...domain.Event,
) uint64 {
	t.Helper()
	seq, err := log.Append(t.Context(), subject, expected, events...)
	streamstest.Must(t, err)
	return seq
}

// names returns the names that a site got after a sequence.
func names(
	t testing.TB, log *directory.Log, subject string, after uint64,
) (names []string, last uint64) {
	t.Helper()
	last, err := log.Load(t.Context(), subject, after, func(_ uint64, e domain.Event) error {
		fact, err := e.Fact()
		if err == nil {
			names = append(names, fact.(domain.SiteRenamed).Name)
		}
		return err
	})
	streamstest.Must(t, err)
	return names, last
}

func TestAppendAndLoad(t *testing.T) {
	t.Parallel()
	log := open(t, streamstest.Start(t))
	if got, last := names(t, log, subject, 0); got != nil || last != 0 {
		t.Fatalf("load an unknown aggregate: got %v up to %d, want nothing", got, last)
	}
	if seq := appendTo(t, log, subject, 0, renamed("1")); seq != 1 {
		t.Fatalf("first append: got sequence %d", seq)
	}
	appendTo(t, log, "directory.site.o.other", 0, renamed("x"))
	if seq := appendTo(t, log, subject, 1, renamed("2"), renamed("3")); seq != 4 {
		t.Fatalf("third append: got sequence %d", seq)
	}
	appendTo(t, log, "directory.site.o.other", 2, renamed("y"))
	appendTo(t, log, subject, 4, renamed("4"))
	for after, want := range map[uint64][]string{
		0: {"1", "2", "3", "4"}, 1: {"2", "3", "4"}, 3: {"3", "4"}, 4: {"4"}, 6: nil, 99: nil,
	} {
		if got, last := names(t, log, subject, after); !reflect.DeepEqual(got, want) ||
			last != max(6, after) {
			t.Errorf("load after %d: got %v up to %d", after, got, last)
		}
	}
	if head, err := log.Head(t.Context(), 0); err != nil || head != 6 {
		t.Errorf("got head %d, %v", head, err)
	}
}

// TestLoadStopsAtUnreadableEvents: no decision may be based on an aggregate with a gap.
func TestLoadStopsAtUnreadableEvents(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	log := open(t, conns)
	appendTo(t, log, subject, 0, renamed("1"))
	store(t, conns, subject, "garbage")
	appendTo(t, log, subject, 2, renamed("3"))
	for after := range uint64(2) {
		seen := 0
		_, err := log.Load(
			t.Context(), subject, after, func(uint64, domain.Event) error { seen++; return nil },
		)
		if err == nil || !strings.Contains(err.Error(), "sequence 2") || seen != int(1-after) {
			t.Errorf("load after %d: got %v after %d events", after, err, seen)
		}
	}
	mine := errors.New("mine")
	_, err := log.Load(t.Context(), subject, 2, func(uint64, domain.Event) error { return mine })
	if !errors.Is(err, mine) {
		t.Errorf("got %v, want the callback's error", err)
	}
}

func TestNothingCanBeRemoved(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	log := open(t, conns)
	appendTo(t, log, subject, 0, renamed("1"))
	api := jsapi.New(conns.Cloud)
	if err := api.Purge(t.Context(), streams.DirectoryStream, "", 2); err == nil {
		t.Error("the directory was purged")
	}
	if err := api.Erase(t.Context(), streams.DirectoryStream, 1); err == nil {
		t.Error("an event was deleted")
	}
}

// TestAppendWithLostAnswer checks that such an append is stored once, and reported as stored.
func TestAppendWithLostAnswer(t *testing.T) {
	t.Parallel()
	for _, events := range [][]domain.Event{{renamed("1")}, {renamed("1"), renamed("2")}} {
		t.Run(fmt.Sprint(len(events)), func(t *testing.T) {
			t.Parallel()
			broker := streamstest.NewCutter(t, "PUB "+subject)
			log := open(t, broker.Connect(t))
			broker.Arm()
			seq, err := log.Append(t.Context(), subject, 0, events...)
			streamstest.Must(t, err)
			if broker.Armed() {
				t.Fatal("the connection was not cut")
			}
			got, last := names(t, log, subject, 0)
			if len(got) != len(events) || last != seq || seq != uint64(len(events)) {
				t.Errorf("got stored names %v up to %d, Append returned %d", got, last, seq)
			}
		})
	}
}

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
		streamstest.Must(t, log.Skip(t.Context(), origin, skip))
	}
	if head, err := log.Head(t.Context(), 0); err != nil || head != 1 {
		t.Errorf("Head after three equal skips: got %d, %v, want 1", head, err)
	}
	store(t, conns, streams.ProjectionSubject("directory"), "rubbish")
	other := skip
	other.Sequence = 2
	streamstest.Must(t, log.Skip(t.Context(), origin, other))
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
