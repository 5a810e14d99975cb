package feed

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hubcloud/domain"
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
	f.want("the log", "", upTo(1, 5))
}

func TestInvalidAppends(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	good := record(hubA, domain.NewEpochID(0xa), 1)
	bad := map[string][]journal.Record{
		"no records":              {},
		"too many records":        slices.Repeat([]journal.Record{good}, 1001),
		"record without an epoch": {good, {Payload: good.Payload}},
		"payload that is too big": {
			{
				Payload: []byte(`{"type":"` + strings.Repeat("x", maxPayload) + `"}`),
				EpochID: domain.NewEpochID(0xa),
			},
		},
	}
	for _, payload := range []string{
		"", `{}`, `{"data":{},"type":"x"}`, "{\"type\":\"x\",\n\"data\":{}}", `{"type":"x"`,
		`null`, "{\"type\":\"\xff\"}",
	} {
		bad["payload "+payload] = []journal.Record{
			{Payload: []byte(payload), EpochID: domain.NewEpochID(0xa)},
		}
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
	events, _ := f.all("", 37)
	seqs := map[uint64]int{}
	for _, e := range events {
		seqs[e.Seq] = number(t, e)
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
	f.deleteStream()
	for range 2 { // from the journal, then from the stream that was written again
		page := f.page(hubA, "", 100)
		f.want("the log", "", upTo(1, int(last)))
		for i, e := range former {
			if page.Events[i].Cursor != e.Cursor {
				t.Fatalf("event %d has cursor %s, want %s as before", i, page.Events[i].Cursor, e.Cursor)
			}
		}
		last = f.append(hubA, last, int(last)+1, 5)
		f.awaitView(hubA, last)
	}
}

// While the broker is away, the outcome of an append is unknown. Whether its events are stored later
// or not, nothing is stored twice, and readers continue.
func TestBrokerRestart(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	f := startOn(t, broker.Connect(t), Config{})
	last := f.append(hubA, 0, 1, 10)
	f.command(hubA)
	r := f.follow(hubA, "")
	if events, err := r.Next(t.Context(), 10); err != nil || len(events) != 0 {
		t.Fatalf("Next = %v, %v; want no events", numbers(t, events), err)
	}
	select {
	case <-r.Ready():
		t.Fatal("Ready has fired, want no event yet")
	default:
	}
	broker.Stop()
	_, err := f.Append(
		t.Context(), hubA, last,
		[]journal.Record{record(hubA, domain.NewEpochID(0xa), 11), record(hubA, domain.NewEpochID(0xa), 12)},
	)
	if !errors.Is(err, ErrOutcomeUnknown) {
		t.Fatalf("Append without a broker: %v, want ErrOutcomeUnknown", err)
	}
	broker.Start(t)
	var n int
	streamstest.Eventually(t, "the next append succeeds", func() bool {
		found, err := f.LastEvents(t.Context(), hubA)
		if err != nil || len(found) == 0 {
			return false
		}
		n = int(found[0].Through) + 1
		_, err = f.Append(
			t.Context(), hubA, found[0].Seq,
			[]journal.Record{record(hubA, domain.NewEpochID(0xa), n)},
		)
		return err == nil
	})
	f.want("the log", "", upTo(1, n))
	if got := read(t, r, 10, n); !slices.Equal(got, upTo(11, n)) {
		t.Errorf("the reader got %v, want 11 to %d", got, n)
	}
}
