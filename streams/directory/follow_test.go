package directory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/directory"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

var errEnough = errors.New("enough")

// checkBatch returns an error unless a batch has the next events as fill stores them.
func checkBatch(next *uint64, batch []directory.Recorded) error {
	if len(batch) == 0 || len(batch) > 1000 {
		return fmt.Errorf("a batch of %d", len(batch))
	}
	for _, r := range batch {
		want := domain.SiteRenamed{OrgID: "o", SiteID: "s", Name: fmt.Sprint(*next)}
		if r.Seq != *next || r.Err != nil || r.Fact != want {
			return fmt.Errorf("want %d, got %d: %v, %v", *next, r.Seq, r.Fact, r.Err)
		}
		*next++
	}
	return nil
}

// following follows up to the sequence until, and checks that there is no gap. Its second batch
// waits for hold.
func following(
	t *testing.T, log *directory.Log, after, until uint64, hold <-chan struct{},
) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		next, calls := after+1, 0
		err := log.Follow(t.Context(), after, func(batch []directory.Recorded) error {
			if calls++; calls == 2 {
				<-hold
			}
			err := checkBatch(&next, batch)
			if err == nil && next > until {
				err = errEnough
			}
			return err
		})
		if errors.Is(err, errEnough) {
			err = nil
		}
		done <- err
	}()
	return done
}

// fill stores events up to a sequence, each named after its sequence, under a thousand subjects.
func fill(t testing.TB, conns *streams.Conns, from, to uint64) {
	t.Helper()
	// A busy disk may take longer than Store's own timeout.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const size = 500
	for seq := from; seq <= to; {
		var msgs []*nats.Msg
		for ; seq <= to && len(msgs) < size; seq++ {
			e := renamed(fmt.Sprint(seq))
			e.ID = "01JD5Q3W8ZV6K2M4N7P9R1S3T5"
			raw, err := domain.EncodeEvent(e)
			streamstest.Must(t, err)
			msgs = append(msgs, &nats.Msg{Subject: subjectOf(seq), Data: raw})
		}
		if last, err := jsapi.Append(ctx, conns.Cloud, msgs...); err != nil || last != seq-1 {
			t.Fatalf("stored up to %d of %d: %v", last, seq-1, err)
		}
	}
}

// store appends a message as it is.
func store(t testing.TB, conns *streams.Conns, subject, data string) {
	t.Helper()
	msg := &nats.Msg{Subject: subject, Data: []byte(data)}
	if _, err := jsapi.Append(t.Context(), conns.Cloud, msg); err != nil {
		t.Fatal(err)
	}
}

func subjectOf(seq uint64) string { return fmt.Sprintf("directory.site.o.%d", seq%1000) }

// TestFollowGivesEachEventOnceInOrder also checks that a slow reader misses no event: what does not
// fit into the feed is read from the log.
func TestFollowGivesEachEventOnceInOrder(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	log := open(t, conns)
	fill(t, conns, 1, 3210)
	hold, none := make(chan struct{}), make(chan struct{})
	close(none)
	all := []<-chan error{following(t, log, 3209, 8000, hold)}
	for _, after := range []uint64{0, 1, 999, 1000, 3209, 3210} {
		all = append(all, following(t, log, after, 8000, none))
	}
	fill(t, conns, 3211, 8000)
	close(hold)
	for i, done := range all {
		if err := <-done; err != nil {
			t.Errorf("follower %d: %v", i, err)
		}
	}
}

func TestFollowGetsNewEventsAtOnce(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	log := open(t, conns)
	seen := make(chan uint64, 1)
	stop := streamstest.Run(t, "Follow", func(ctx context.Context) error {
		return log.Follow(ctx, 0, func(batch []directory.Recorded) error {
			seen <- batch[len(batch)-1].Seq
			return nil
		})
	})
	var took []time.Duration
	for seq := uint64(1); seq <= 200; seq++ {
		fill(t, conns, seq, seq)
		start := time.Now()
		if got := <-seen; got != seq {
			t.Fatalf("got sequence %d, want %d", got, seq)
		}
		if seq > 1 { // the first may come by way of the log
			took = append(took, time.Since(start))
		}
	}
	// A follower polls the log every second: new events must arrive earlier, half of them even on a
	// busy machine.
	slices.Sort(took)
	if median := took[len(took)/2]; median > 500*time.Millisecond {
		t.Errorf("half of the events took %s or more", median)
	}
	stop()
}

func TestFollowOutlivesTheBroker(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	conns := broker.Connect(t)
	log := open(t, conns)
	none := make(chan struct{})
	close(none)
	done := following(t, log, 0, 4000, none)
	for round := range uint64(4) {
		fill(t, conns, round*1000+1, round*1000+700)
		broker.Stop()
		broker.Start(t)
		awaitConnected(t, conns.Cloud)
		fill(t, conns, round*1000+701, round*1000+1000)
		streamstest.Must(t, conns.Cloud.ForceReconnect())
		awaitConnected(t, conns.Cloud)
	}
	streamstest.Must(t, <-done)
}

func awaitConnected(t *testing.T, nc *nats.Conn) {
	t.Helper()
	streamstest.EventuallyNil(t, "the connection is back", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := jsapi.New(nc).Info(ctx, streams.DirectoryStream)
		return err
	})
}

// TestFollowLeavesNothingOut: unreadable events are passed on in their place. A projector must stop
// there, and not build on a gap.
func TestFollowLeavesNothingOut(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	log := open(t, conns)
	fill(t, conns, 1, 1)
	for _, data := range []string{
		"garbage",
		`{"id":"01JD5Q3W8ZV6K2M4N7P9R1S3T5","type":"site.painted","v":1,"at":"2026-01-02T03:04:05Z","actor":{"kind":"key"},"data":{}}`,
	} {
		store(t, conns, subject, data)
	}
	fill(t, conns, 4, 4)
	var got []directory.Recorded
	err := log.Follow(t.Context(), 0, func(batch []directory.Recorded) error {
		if got = append(got, batch...); len(got) >= 4 {
			return errEnough
		}
		return nil
	})
	if !errors.Is(err, errEnough) || len(got) != 4 {
		t.Fatalf("got %d, %v", len(got), err)
	}
	for i, wrong := range []bool{false, true, true, false} {
		if (got[i].Err != nil) != wrong || (got[i].Fact == nil) != wrong ||
			got[i].Seq != uint64(i+1) {
			t.Errorf("event at %d: got %+v", i+1, got[i])
		}
	}
	if !errors.Is(got[2].Err, domain.ErrUnknownEvent) || got[2].Event.Type != "site.painted" {
		t.Errorf("event of a newer program: got %+v, want ErrUnknownEvent", got[2])
	}
}

// Regression: the broker publishes the events of a batch before the batch is on disk. Follow passed
// them on at once, so that a power cut in between left the read models ahead of the directory.
func TestFollowWaitsForBatches(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	log := open(t, conns)
	fill(t, conns, 1, 1)
	seen := make(chan directory.Recorded, 10)
	streamstest.Run(t, "Follow", func(ctx context.Context) error {
		return log.Follow(ctx, 0, func(batch []directory.Recorded) error {
			for _, r := range batch {
				seen <- r
			}
			return nil
		})
	})
	if r := <-seen; r.Seq != 1 {
		t.Fatalf("first event has sequence %d, want 1", r.Seq)
	}
	// An event of a batch that is published and never stored, as before a power cut.
	lost := renamed("lost")
	lost.ID = "01JD5Q3W8ZV6K2M4N7P9R1S3T5"
	raw, err := domain.EncodeEvent(lost)
	streamstest.Must(t, err)
	err = conns.Cloud.PublishMsg(&nats.Msg{
		Subject: "feed.directory.site.o.2", Data: raw,
		Header: nats.Header{
			jetstream.SequenceHeader: {"2"}, jsapi.HeaderBatchSequence: {"1"},
			jsapi.HeaderBatchID: {"b"},
		},
	})
	streamstest.Must(t, err)
	fill(t, conns, 2, 2)
	if r := <-seen; r.Seq != 2 || r.Fact != (domain.SiteRenamed{OrgID: "o", SiteID: "s", Name: "2"}) {
		t.Errorf("second event = %d, %v, want 2 as it is stored", r.Seq, r.Fact)
	}
}

// TestFollowBeyondTheEnd: a position beyond the end belongs to another log, and events would be left
// out. It also checks that Follow ends with the connection.
func TestFollowBeyondTheEnd(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	log := open(t, conns)
	fill(t, conns, 1, 5)
	err := log.Follow(t.Context(), 6, func([]directory.Recorded) error { return nil })
	if !errors.Is(err, directory.ErrBeyondEnd) {
		t.Errorf("Follow: got %v, want ErrBeyondEnd", err)
	}
	err = log.Follow(t.Context(), 0, func([]directory.Recorded) error { conns.Close(); return nil })
	if !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("Follow of a closed connection: got %v, want ErrConnectionClosed", err)
	}
}
