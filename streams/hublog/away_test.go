package hublog

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
	"hubcloud/streams/journal"
)

// While the only server with a hub's stream is away, everything that is known of the log comes from
// the journal, and is the same as before.
func TestStreamAway(t *testing.T) {
	t.Parallel()
	f := start(t, Config{RingEvents: 1})
	begun := time.Now()
	epoch, _ := f.epochOf(hubA)
	connected := record(hubA, epoch.ID, 1)
	connected.Kind, connected.OwnLog, connected.Through = journal.KindCloudEvent, "", 0
	connected.Connection = "connection"
	last, err := f.Append(t.Context(), hubA, 0, []journal.Record{connected})
	if err != nil {
		t.Fatal(err)
	}
	f.command(hubA)
	for n := range 10 { // more records than are read at once
		last = f.append(hubA, last, 50*n+2, 50)
	}
	end := f.command(hubA)
	f.awaitView(hubA, end)

	type known struct {
		last     []LastEvent
		commands int
		at       string
		events   []int
	}
	look := func() (k known, err error) {
		if k.last, err = f.LastEvents(t.Context(), hubA); err != nil {
			return k, fmt.Errorf("LastEvents: %w", err)
		}
		commands, err := f.CommandRecords(t.Context(), hubA, begun.Add(-time.Minute), 10)
		if err != nil {
			return k, fmt.Errorf("CommandRecords: %w", err)
		}
		k.commands = len(commands)
		if k.at, err = f.At(t.Context(), hubA, begun.Add(-time.Second)); err != nil {
			return k, fmt.Errorf("At: %w", err)
		}
		page, err := f.Page(t.Context(), hubA, "", 500)
		k.events = numbers(t, page.Events)
		return k, err
	}
	want, err := look()
	if err != nil {
		t.Fatal(err)
	}
	if len(want.last) != 2 || want.commands != 2 || !slices.Equal(want.events, upTo(1, 500)) {
		t.Fatalf("with the stream: %d last events, %d commands, %d events; want 2, 2, 500",
			len(want.last), want.commands, len(want.events))
	}
	f.journal.away.Store(true)
	js, err := jetstream.New(f.shard(hubA).nc)
	if err != nil {
		t.Fatal(err)
	}
	// The journal's writer sees no need to write the stream again: nothing is written to it.
	if err := js.DeleteStream(t.Context(), streams.HubStream(hubA)); err != nil {
		t.Fatal(err)
	}
	f.history.cache = newBlockCache(1, f.metrics)
	got, err := look()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("without the stream: %+v, %v; want %+v", got, err, want)
	}
	if last = f.append(hubA, last, 502, 1); last != end+1 {
		t.Errorf("the next event has the sequence %d, want %d", last, end+1)
	}
}

var errAway = errors.New("the server of the stream is away")
