package hublog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

func TestAppendExpectsTheLastEvent(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	last := f.append(hubA, 0, 1, 1)
	f.command(hubA)
	last = f.append(hubA, last, 2, 3)
	if last != 5 {
		t.Fatalf("four events and a command end at %d", last)
	}
	link := record(hubA, domain.NewEpochID(0xa), 5)
	link.FromCloud, link.OwnLog = true, ""
	if last, err := f.Append(t.Context(), hubA, last, []Record{link}); err != nil || last != 6 {
		t.Fatalf("an event of the cloud: %d, %v", last, err)
	}
	// Plain and in a batch; with an expectation that is too old, of the other subject, too new, of
	// a command, and none.
	for _, expected := range []uint64{0, 1, 2, 5, 7} {
		for _, count := range []int{1, 2, 50} {
			_, err := f.Append(
				t.Context(), hubA, expected,
				slices.Repeat([]Record{record(hubA, domain.NewEpochID(0xa), 9)}, count),
			)
			if !errors.Is(err, ErrConflict) {
				t.Errorf("%d events behind %d: %v", count, expected, err)
			}
		}
	}
	if got := numbers(t, f.page(hubA, "", 100).Events); !slices.Equal(got, upTo(1, 5)) {
		t.Errorf("the log has %v", got)
	}
}

func TestAppendRefusals(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	good := record(hubA, domain.NewEpochID(0xa), 1)
	bad := map[string][]Record{
		"none":     {},
		"too many": slices.Repeat([]Record{good}, 1001),
		"no epoch": {good, {Payload: good.Payload}},
		"payload":  {{Payload: []byte(`{}`), EpochID: domain.NewEpochID(0xa)}},
		"too big": {
			{
				Payload: []byte(`{"type":"` + strings.Repeat("x", maxPayload) + `"}`),
				EpochID: domain.NewEpochID(0xa),
			},
		},
		"second line": {
			{Payload: []byte("{\"type\":\"x\",\"data\":\n{}}"), EpochID: domain.NewEpochID(0xa)},
		},
	}
	for name, records := range bad {
		if _, err := f.Append(t.Context(), hubA, 0, records); err == nil ||
			errors.Is(err, ErrConflict) ||
			errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if last, err := f.LastSequence(t.Context(), hubA); err != nil || last != 0 {
		t.Errorf("something is stored up to %d, %v", last, err)
	}
}

// Writers race for one hub with plain messages, batches and commands: each append succeeds once or
// not at all, lies in one piece, and what it was told of its last sequence is true.
func TestAppendsRace(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	ends := map[uint64]int{} // by last sequence, how many
	for w := range 6 {
		wg.Go(func() {
			for i := range 12 {
				count := []int{1, 2, 40}[(w+i)%3]
				records := make([]Record, count)
				for k := range records {
					records[k] = record(hubA, domain.NewEpochID(0xa), w*10000+i*100+k)
				}
				for {
					marks, err := f.LastEvents(t.Context(), hubA)
					if err != nil {
						t.Error(err)
						return
					}
					var expected uint64
					for _, m := range marks {
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
		t.Fatalf("%d appends of %d events have left %d", len(ends), want, len(events))
	}
	for last, count := range ends {
		for k := range count {
			if seqs[last-uint64(k)] != seqs[last]-k {
				t.Fatalf(
					"the append of %d events that ends at %d is torn at %d", count, last,
					last-uint64(k),
				)
			}
		}
	}
}

// When retention has emptied the log, its last event is none, and sequences go on.
func TestAppendToAnEmptiedLog(t *testing.T) {
	t.Parallel()
	f := start(t, Config{Retention: time.Second})
	last := f.append(hubA, 0, 1, 10)
	streamstest.Eventually(t, "the events expire", func() bool {
		marks, err := f.LastEvents(t.Context(), hubA)
		if err != nil {
			t.Fatal(err)
		}
		return len(marks) == 0
	})
	if _, err := f.Append(t.Context(), hubA, last, []Record{
		record(hubA, domain.NewEpochID(0xa), 11),
	}); !errors.Is(err, ErrConflict) {
		t.Errorf("behind an event that has expired: %v", err)
	}
	if got := f.append(hubA, 0, 11, 2); got != 12 {
		t.Errorf("the log goes on with %d", got)
	}
}

func TestLastEvents(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	if marks, err := f.LastEvents(t.Context(), hubA); err != nil || len(marks) != 0 {
		t.Fatalf("a log that is not there: %v, %v", marks, err)
	}
	device := record(hubA, domain.NewEpochID(0xa), 41)
	link := record(hubA, domain.NewEpochID(0xa), 2)
	link.FromCloud, link.OwnLog, link.Through, link.Connection = true, "log-2", 7, `{"server":"x","cid":3}`
	if _, err := f.Append(t.Context(), hubA, 0, []Record{device, link}); err != nil {
		t.Fatal(err)
	}
	f.command(hubA)
	marks, err := f.LastEvents(t.Context(), hubA)
	if err != nil || len(marks) != 2 {
		t.Fatalf("%v, %v", marks, err)
	}
	for i := range marks {
		if age := time.Since(marks[i].Time); age < 0 || age > time.Minute {
			t.Errorf("stored %v ago", age)
		}
		marks[i].Time = time.Time{}
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
			Connection: link.Connection,
			Type:       "channel.observed",
		},
	}
	if !slices.Equal(marks, want) {
		t.Errorf("%+v, want %+v", marks, want)
	}
	if last, err := f.LastSequence(t.Context(), hubA); err != nil || last != 3 {
		t.Errorf("the last sequence is %d, %v", last, err)
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

	// Another retention is taken over, and nothing is lost.
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
		t.Errorf("retention is %v, messages %d", info.Config.MaxAge, info.State.Msgs)
	}

	// Anything else that differs is refused and left.
	other := fmt.Sprint("hub-bbbb-bbbb-bbb", 1)
	cfg := longer.streamConfig("hub-bbbb-bbbb-bbb1")
	cfg.AllowAtomicPublish = false
	if _, err := longer.shard("hub-bbbb-bbbb-bbb1").js.CreateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	err = longer.Ensure(t.Context(), "hub-bbbb-bbbb-bbb1")
	if !errors.Is(err, streams.ErrIncompatible) || !strings.Contains(err.Error(), "allow_atomic") {
		t.Errorf("%s: %v", other, err)
	}
}

// A stream that was deleted behind our back is made again by the next append.
func TestAppendMakesAMissingStream(t *testing.T) {
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
			t.Errorf("%d events end at %d", count, last)
		}
	}
}

func TestAppendUnsure(t *testing.T) {
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
		t.Fatalf("without a broker: %v", err)
	}
	broker.Start(t)
	// What was sent may arrive yet; either way nothing is stored twice.
	streamstest.Eventually(t, "the log goes on", func() bool {
		marks, err := f.LastEvents(t.Context(), hubA)
		if err != nil || len(marks) == 0 {
			return false
		}
		_, err = f.Append(
			t.Context(), hubA, marks[0].Seq,
			[]Record{record(hubA, domain.NewEpochID(0xa), int(marks[0].Through)+1)},
		)
		return err == nil
	})
	got := numbers(t, f.page(hubA, "", 100).Events)
	if !slices.Equal(got, upTo(1, len(got))) {
		t.Errorf("the log has %v", got)
	}
}
