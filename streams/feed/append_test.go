package feed

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/journal"
	"hubcloud/streams/streamstest"
)

func TestAppendExpectsTheLastEvent(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	last := f.append(hubA, 0, 1, 1)
	f.command(hubA)
	last = f.append(hubA, last, 2, 3)
	if last != 5 {
		t.Fatalf("after four events and a command the last sequence is %d, want 5", last)
	}
	event := record(hubA, domain.NewEpochID(0xa), 5)
	event.Kind, event.OwnLog, event.Through = journal.KindCloudEvent, "", 0
	if last, err := f.Append(t.Context(), hubA, last, []journal.Record{event}); err != nil || last != 6 {
		t.Fatalf("Append of an event of the cloud = %d, %v; want 6", last, err)
	}
	// Expect no event, events that are not the last, a command, and a sequence beyond the end.
	for _, expected := range []uint64{0, 1, 2, 5, 7} {
		for _, count := range []int{1, 2, 50} {
			_, err := f.Append(
				t.Context(), hubA, expected,
				slices.Repeat([]journal.Record{record(hubA, domain.NewEpochID(0xa), 9)}, count),
			)
			if !errors.Is(err, ErrConflict) {
				t.Errorf(
					"Append of %d events after sequence %d: %v, want ErrConflict", count, expected,
					err,
				)
			}
		}
	}
	if got := numbers(t, f.page(hubA, "", 100).Events); !slices.Equal(got, upTo(1, 5)) {
		t.Errorf("the log has events %v, want 1 to 5", got)
	}
}

func TestInvalidAppends(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	good := record(hubA, domain.NewEpochID(0xa), 1)
	bad := map[string][]journal.Record{
		"no records":              {},
		"too many records":        slices.Repeat([]journal.Record{good}, 1001),
		"record without an epoch": {good, {Payload: good.Payload}},
		"payload without a type":  {{Payload: []byte(`{}`), EpochID: domain.NewEpochID(0xa)}},
		"payload that is too big": {
			{
				Payload: []byte(`{"type":"` + strings.Repeat("x", maxPayload) + `"}`),
				EpochID: domain.NewEpochID(0xa),
			},
		},
		"payload of two lines": {
			{Payload: []byte("{\"type\":\"x\",\"data\":\n{}}"), EpochID: domain.NewEpochID(0xa)},
		},
	}
	for name, records := range bad {
		if _, err := f.Append(t.Context(), hubA, 0, records); err == nil ||
			errors.Is(err, ErrConflict) ||
			errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("Append of %s: %v, want another error", name, err)
		}
	}
	if last, err := f.LastSequence(t.Context(), hubA); err != nil || last != 0 {
		t.Errorf("LastSequence = %d, %v; want 0", last, err)
	}
}

// Writers append single messages, batches and commands to one log at the same time. Each append
// succeeds once or not at all, its events follow each other without others in between, and the
// sequence that it returns is that of its last event.
func TestAppendsRace(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	ends := map[uint64]int{} // number of events of each append, by the sequence returned
	for w := range 6 {
		wg.Go(func() {
			for i := range 12 {
				count := []int{1, 2, 40}[(w+i)%3]
				records := make([]journal.Record, count)
				for k := range records {
					records[k] = record(hubA, domain.NewEpochID(0xa), w*10000+i*100+k)
				}
				for {
					found, err := f.LastEvents(t.Context(), hubA)
					if err != nil {
						t.Error(err)
						return
					}
					var expected uint64
					for _, m := range found {
						expected = max(expected, m.Seq)
					}
					last, err := f.Append(t.Context(), hubA, expected, records)
					if errors.Is(err, ErrConflict) {
						continue
					}
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					ends[last] = count
					mu.Unlock()
					break
				}
				f.command(hubA)
			}
		})
	}
	wg.Wait()
	want := 0
	for _, count := range ends {
		want += count
	}
	var events []int
	seqs := map[uint64]int{}
	for after := ""; ; {
		page := f.page(hubA, after, 37)
		for _, e := range page.Events {
			seqs[e.Seq] = number(t, e)
			events = append(events, seqs[e.Seq])
		}
		if after = page.Next; !page.HasMore {
			break
		}
	}
	if len(events) != want || len(ends) != 72 {
		t.Fatalf("the log has %d events of %d appends, want %d of 72", len(events), len(ends), want)
	}
	for last, count := range ends {
		for k := range count {
			if seqs[last-uint64(k)] != seqs[last]-k {
				t.Fatalf(
					"the append of %d events up to sequence %d has another event at %d", count,
					last, last-uint64(k),
				)
			}
		}
	}
}

// Once all events have expired an append expects no last event, and sequences continue.
func TestAppendToAnEmptiedLog(t *testing.T) {
	t.Parallel()
	f := start(t, Config{Retention: time.Second})
	last := f.append(hubA, 0, 1, 10)
	streamstest.Eventually(t, "the events expire", func() bool {
		found, err := f.LastEvents(t.Context(), hubA)
		if err != nil {
			t.Fatal(err)
		}
		return len(found) == 0
	})
	if got := f.append(hubA, 0, 11, 2); got != last+2 {
		t.Errorf("the last sequence is %d, want 12", got)
	}
}

func TestLastEvents(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	if found, err := f.LastEvents(t.Context(), hubA); err != nil || len(found) != 0 {
		t.Fatalf("LastEvents of a hub without a log = %v, %v; want none", found, err)
	}
	ofHub := record(hubA, domain.NewEpochID(0xa), 41)
	ofCloud := record(hubA, domain.NewEpochID(0xa), 2)
	ofCloud.Kind, ofCloud.OwnLog, ofCloud.Through = journal.KindCloudEvent, "log-2", 7
	ofCloud.Connection = `{"server":"x","cid":3}`
	if _, err := f.Append(t.Context(), hubA, 0, []journal.Record{ofHub, ofCloud}); err != nil {
		t.Fatal(err)
	}
	f.command(hubA)
	found, err := f.LastEvents(t.Context(), hubA)
	if err != nil || len(found) != 2 {
		t.Fatalf("LastEvents = %v, %v; want two", found, err)
	}
	for i := range found {
		if age := time.Since(found[i].Time); age < 0 || age > time.Minute {
			t.Errorf("an event was stored %v ago, want less than a minute", age)
		}
		found[i].Time = time.Time{}
	}
	want := []LastEvent{
		{
			Seq:     1,
			EpochID: domain.NewEpochID(0xa),
			OwnLog:  "log-1",
			Through: 41,
			Type:    "channel.observed",
		},
		{
			Seq:        2,
			FromCloud:  true,
			EpochID:    domain.NewEpochID(0xa),
			OwnLog:     "log-2",
			Through:    7,
			Connection: ofCloud.Connection,
			Type:       "channel.observed",
		},
	}
	if !slices.Equal(found, want) {
		t.Errorf("LastEvents = %+v, want %+v", found, want)
	}
	if last, err := f.LastSequence(t.Context(), hubA); err != nil || last != 3 {
		t.Errorf("LastSequence = %d, %v; want 3", last, err)
	}
}

// A log whose stream was deleted goes on, with all of its events and their cursors.
func TestDeletedStream(t *testing.T) {
	t.Parallel()
	f := start(t, Config{CacheBytes: 1})
	last := f.append(hubA, 0, 1, 20)
	former := f.page(hubA, "", 100).Events
	f.awaitView(hubA, last)
	js, err := jetstream.New(f.conns.Shard(hubA))
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), streams.HubStream(hubA)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // from the journal, then from the stream that was written again
		page := f.page(hubA, "", 100)
		if got := numbers(t, page.Events); !slices.Equal(got, upTo(1, int(last))) {
			t.Fatalf("page has events %v, want 1 to %d", got, last)
		}
		for i, e := range former {
			if page.Events[i].Cursor != e.Cursor {
				t.Fatalf("event %d has cursor %s, want %s as before", i, page.Events[i].Cursor, e.Cursor)
			}
		}
		last = f.append(hubA, last, int(last)+1, 5)
		f.awaitView(hubA, last)
	}
}

func TestAppendWithUnknownOutcome(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	f := startOn(t, broker.Connect(t), Config{})
	last := f.append(hubA, 0, 1, 1)
	broker.Stop()
	_, err := f.Append(
		t.Context(), hubA, last,
		[]journal.Record{record(hubA, domain.NewEpochID(0xa), 2), record(hubA, domain.NewEpochID(0xa), 3)},
	)
	if !errors.Is(err, ErrOutcomeUnknown) {
		t.Fatalf("Append without a broker: %v, want ErrOutcomeUnknown", err)
	}
	broker.Start(t)
	// The messages may still arrive. Whether they do or not, nothing is stored twice.
	streamstest.Eventually(t, "the next append succeeds", func() bool {
		found, err := f.LastEvents(t.Context(), hubA)
		if err != nil || len(found) == 0 {
			return false
		}
		_, err = f.Append(
			t.Context(), hubA, found[0].Seq,
			[]journal.Record{record(hubA, domain.NewEpochID(0xa), int(found[0].Through)+1)},
		)
		return err == nil
	})
	got := numbers(t, f.page(hubA, "", 100).Events)
	if !slices.Equal(got, upTo(1, len(got))) {
		t.Errorf("the log has events %v, want 1 to %d", got, len(got))
	}
}
