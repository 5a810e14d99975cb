package hublog

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/logformat"
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
	event.FromCloud, event.OwnLog = true, ""
	if last, err := f.Append(t.Context(), hubA, last, []Record{event}); err != nil || last != 6 {
		t.Fatalf("Append of an event of the cloud = %d, %v; want 6", last, err)
	}
	// Expect no event, events that are not the last, a command, and a sequence beyond the end.
	for _, expected := range []uint64{0, 1, 2, 5, 7} {
		for _, count := range []int{1, 2, 50} {
			_, err := f.Append(
				t.Context(), hubA, expected,
				slices.Repeat([]Record{record(hubA, domain.NewEpochID(0xa), 9)}, count),
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
	bad := map[string][]Record{
		"no records":              {},
		"too many records":        slices.Repeat([]Record{good}, 1001),
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
				records := make([]Record, count)
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
	if _, err := f.Append(t.Context(), hubA, last, []Record{
		record(hubA, domain.NewEpochID(0xa), 11),
	}); !errors.Is(err, ErrConflict) {
		t.Errorf("Append after an event that has expired: %v, want ErrConflict", err)
	}
	if got := f.append(hubA, 0, 11, 2); got != 12 {
		t.Errorf("the last sequence is %d, want 12", got)
	}
}

// TestOwnTime stores an event with a time of its own, as a log has them that was written again
// later. Every way to read the event must return that time.
func TestOwnTime(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	f.append(hubA, 0, 1, 1)
	epoch, _ := f.epochOf(hubA)
	own := time.Now().Add(-time.Minute).UTC()
	var headers headerCache
	r := record(hubA, epoch.ID, 2)
	msg := r.message(streams.HubEventSubject(hubA), &headers)
	msg.Header[logformat.HeaderTime] = []string{logformat.FormatTime(own)}
	if _, err := jsapi.Append(t.Context(), f.shard(hubA).nc, msg); err != nil {
		t.Fatal(err)
	}
	found, err := f.LastEvents(t.Context(), hubA)
	if err != nil || len(found) != 1 || !found[0].Time.Equal(own) {
		t.Errorf("LastEvents = %+v, %v; want one event of %v", found, err, own)
	}
	page := f.page(hubA, "", 10)
	if len(page.Events) != 2 {
		t.Fatalf("page: got %d events, want 2", len(page.Events))
	}
	got, err := DecodeCursor(page.Events[1].Cursor)
	if err != nil || got.Stored.UnixMilli() != own.UnixMilli() {
		t.Errorf("cursor: got %+v, %v, want the time %v", got, err, own)
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
	ofCloud.FromCloud, ofCloud.OwnLog, ofCloud.Through = true, "log-2", 7
	ofCloud.Connection = `{"server":"x","cid":3}`
	if _, err := f.Append(t.Context(), hubA, 0, []Record{ofHub, ofCloud}); err != nil {
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

func TestEnsure(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := f.Ensure(t.Context(), hubA); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	f.append(hubA, 0, 1, 3)

	// Ensure changes the retention and keeps the messages.
	longer := startOn(t, f.conns, Config{Retention: 2 * time.Hour})
	if err := longer.Ensure(t.Context(), hubA); err != nil {
		t.Fatal(err)
	}
	js := longer.shard(hubA).js
	stream, err := js.Stream(t.Context(), streams.HubStream(hubA))
	if err != nil {
		t.Fatal(err)
	}
	if info := stream.CachedInfo(); info.Config.MaxAge != 2*time.Hour || info.State.Msgs != 3 {
		t.Errorf(
			"the stream has retention %v and %d messages, want 2h and 3", info.Config.MaxAge,
			info.State.Msgs,
		)
	}

	// Ensure rejects any other difference and does not change it.
	const other = domain.HubID("hub-bbbb-bbbb-bbb1")
	cfg := longer.streamConfig(other)
	cfg.AllowAtomicPublish = false
	if _, err := longer.shard(other).js.CreateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	err = longer.Ensure(t.Context(), other)
	if !errors.Is(err, streams.ErrIncompatible) || !strings.Contains(err.Error(), "allow_atomic") {
		t.Errorf("Ensure of a stream without atomic batches: %v, want ErrIncompatible", err)
	}
}

// An append creates the stream again if it was deleted.
func TestAppendCreatesAMissingStream(t *testing.T) {
	t.Parallel()
	for _, count := range []int{1, 20} {
		f := start(t, Config{})
		f.append(hubA, 0, 1, count)
		js, err := jetstream.New(f.conns.Shard(hubA))
		if err != nil {
			t.Fatal(err)
		}
		if err := js.DeleteStream(t.Context(), streams.HubStream(hubA)); err != nil {
			t.Fatal(err)
		}
		if last := f.append(hubA, 0, 1, count); last != uint64(count) {
			t.Errorf("Append of %d events = %d, want %d", count, last, count)
		}
	}
}

func TestAppendWithUnknownOutcome(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	f := startOn(t, broker.Connect(t), Config{})
	last := f.append(hubA, 0, 1, 1)
	broker.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := f.Append(
		ctx, hubA, last,
		[]Record{record(hubA, domain.NewEpochID(0xa), 2), record(hubA, domain.NewEpochID(0xa), 3)},
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
			[]Record{record(hubA, domain.NewEpochID(0xa), int(found[0].Through)+1)},
		)
		return err == nil
	})
	got := numbers(t, f.page(hubA, "", 100).Events)
	if !slices.Equal(got, upTo(1, len(got))) {
		t.Errorf("the log has events %v, want 1 to %d", got, len(got))
	}
}
