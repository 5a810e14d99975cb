package feed

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"hubcloud/streams"
	"hubcloud/streams/journal"
	"hubcloud/streams/streamstest"
)

// A server that is stopped or cut off does not answer for the streams that it has, although they
// are complete. Regression: pages were answered with service_unavailable, and a hub that connected
// got no ack. Everything must come from the journal.
func TestStreamSilent(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	writer := startOn(t, broker.Connect(t), Config{})
	network := streamstest.NewNetwork(t, broker)
	remote := network.Connect(t)
	conns := *broker.Connect(t)
	conns.Shards = remote.Shards
	f := startOn(t, &conns, Config{RingEvents: 1})
	writer.fillForLook()
	want := f.look(t)
	network.Hold(true)
	defer network.Hold(false)
	f.cache = newBlockCache(1, f.metrics)
	if got := f.look(t); !reflect.DeepEqual(got, want) {
		t.Errorf("without an answer of the stream: %+v; want %+v", got, want)
	}
	if silent := testutil.ToFloat64(f.metrics.silent); silent == 0 {
		t.Error("hubcloud_feed_silent_streams_total: got 0, want more")
	}
}

// A server that is cut off from the broker ends its readers. Regression: one that was reading older
// events at that moment waited for the broker instead, up to 15 seconds.
func TestReadOfHistoryEndsWithTheTail(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	writer := startOn(t, broker.Connect(t), Config{})
	writer.awaitView(hubA, writer.append(hubA, 0, 1, 20))
	network := streamstest.NewNetwork(t, broker)
	conns := network.Connect(t)
	f := startOn(t, conns, Config{RingEvents: 1})
	reader := f.follow(hubA, f.page(hubA, "", 2).Next)
	f.cache = newBlockCache(1, f.metrics)
	network.Hold(true)
	defer network.Hold(false)
	before := testutil.ToFloat64(f.metrics.directGets)
	ended := make(chan error, 1)
	go func() {
		_, err := reader.Next(t.Context(), 10)
		ended <- err
	}()
	streamstest.Eventually(t, "the stream is asked", func() bool {
		return testutil.ToFloat64(f.metrics.directGets) > before
	})
	s := f.shard(hubA)
	s.remove(s.tail(hubA), ErrLost) // as a sweep does
	if err := <-ended; !errors.Is(err, ErrLost) {
		t.Errorf("Next: %v, want ErrLost", err)
	}
}

// The journal keeps records for an hour longer than the retention. Regression: while a stream was
// away, a page from the start waited in vain for the records that had expired.
func TestStreamAwayAfterTheRetention(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	writer := startOn(t, broker.Connect(t), Config{})
	last := writer.append(hubA, 0, 1, 10)
	between := time.Now().Add(10 * time.Millisecond)
	streamstest.Eventually(t, "two moments pass", func() bool {
		return time.Since(between) > 10*time.Millisecond
	})
	last = writer.append(hubA, last, 11, 5)
	writer.awaitView(hubA, last)
	const retention = time.Hour
	f := startOn(t, broker.Connect(t), Config{
		Retention: retention, RingEvents: 1,
		Now: func() time.Time { return between.Add(retention) },
	})
	f.deleteStream()
	f.want("page from the start", "", upTo(11, 15))
	messages, err := f.records(t.Context(), hubA, 5, last)
	if err != nil || messages[0].seq != 11 {
		t.Errorf("records from 5: got %d from %v on, %v; want them from 11 on", len(messages),
			messages, err)
	}
	var gone *goneError
	if _, err := f.records(t.Context(), hubA, 5, 8); !errors.As(err, &gone) {
		t.Errorf("records from 5 to 8: %v, want that they have expired", err)
	}
}

// deleteStream deletes the stream of hubA's log.
func (f *fixture) deleteStream() {
	f.tb.Helper()
	js := streamstest.JetStream(f.tb, f.conns.Shard(hubA))
	streamstest.Must(f.tb, js.DeleteStream(f.tb.Context(), streams.HubStream(hubA)))
}

// fillForLook appends 500 events, an event of the cloud and two commands to hubA's log. It returns
// the sequences of the last event and of the last record.
func (f *fixture) fillForLook() (last, end uint64) {
	f.tb.Helper()
	epoch, _ := f.epochOf(hubA)
	connected := record(hubA, epoch.ID, 1)
	connected.Kind, connected.OwnLog, connected.Through = journal.KindCloudEvent, "", 0
	connected.Connection = "connection"
	last, err := f.Append(f.tb.Context(), hubA, 0, []journal.Record{connected})
	streamstest.Must(f.tb, err)
	f.command(hubA)
	for n := range 10 { // more records than are read at once
		last = f.append(hubA, last, 50*n+2, 50)
	}
	end = f.command(hubA)
	f.awaitView(hubA, end)
	return last, end
}

// known is what is known of a log.
type known struct {
	last       []LastEvent
	commands   int
	at         string
	events     []int
	later, end []int
}

// look returns what is known of hubA's log, which fillForLook has filled.
func (f *fixture) look(t *testing.T) (k known) {
	t.Helper()
	fail := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	var err error
	k.last, err = f.LastEvents(t.Context(), hubA)
	fail("LastEvents", err)
	commands, err := f.CommandRecords(t.Context(), hubA, time.Now().Add(-time.Minute), 10)
	fail("CommandRecords", err)
	k.commands = len(commands)
	k.at, err = f.At(t.Context(), hubA, k.last[1].Time)
	fail("At", err)
	page, err := f.Page(t.Context(), hubA, "", 500)
	fail("Page", err)
	k.events = numbers(t, page.Events)
	reader, err := f.Follow(t.Context(), hubA, page.Events[99].Cursor)
	fail("Follow", err)
	defer reader.Close()
	events, err := reader.Next(t.Context(), 50)
	fail("Next", err)
	k.later = numbers(t, events)
	page, err = f.Before(t.Context(), hubA, "", 50)
	fail("Before", err)
	k.end = numbers(t, page.Events)
	if len(k.last) != 2 || k.commands != 2 || !slices.Equal(k.events, upTo(1, 500)) ||
		!slices.Equal(k.later, upTo(101, 150)) || len(k.end) != 50 || k.end[0] != 501 {
		t.Fatalf("known of the log: %+v", k)
	}
	return k
}
