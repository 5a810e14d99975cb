package feed

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/journal"
	"hubcloud/streams/streamstest"
)

// source is a Source over a tap's own connection.
func source(t *testing.T, broker *streamstest.Broker) *Source {
	t.Helper()
	user := broker.Credentials().Users[streams.AccountTap]
	nc, err := nats.Connect(
		"nats://in-process", nats.InProcessServer(broker), nats.UserInfo(user.User, user.Password),
		nats.CustomInboxPrefix(streams.TapInbox(user.User)),
	)
	streamstest.Must(t, err)
	t.Cleanup(nc.Close)
	s := NewSource(nc, streamstest.Shards)
	t.Cleanup(s.Close)
	return s
}

// A Source reads events with the cursors and envelopes that pages have, and the commands between
// them.
func TestSourceReads(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	f := startOn(t, broker.Connect(t), Config{})
	s := source(t, broker)
	if state, err := s.State(t.Context(), hubA, 0); err != nil || state != (State{First: 1}) {
		t.Errorf("State without a log = %+v, %v; want First 1", state, err)
	}
	if messages, err := s.Read(t.Context(), hubA, 1, 10); err != nil || len(messages) > 0 {
		t.Errorf("Read without a log = %v, %v; want none", messages, err)
	}
	last := f.append(hubA, 0, 1, 700)
	f.command(hubA)
	record := event(701)
	record.OrgID = "org"
	if _, err := f.Append(t.Context(), hubA, last, []journal.Record{record}); err != nil {
		t.Fatal(err)
	}
	f.awaitView(hubA, 702)
	var all []Message
	for from := uint64(1); ; {
		messages, err := s.Read(t.Context(), hubA, from, MaxRead+1)
		if err != nil || len(messages) > MaxRead {
			t.Fatalf("Read = %d messages, %v; want at most %d", len(messages), err, MaxRead)
		}
		if len(messages) == 0 {
			break
		}
		all = append(all, messages...)
		from = messages[len(messages)-1].Seq + 1
	}
	state, err := s.State(t.Context(), hubA, 0)
	if err != nil || state.First != 1 || state.Last != 702 || state.Retention != time.Hour ||
		state.LastStored.Before(all[701].Stored) {
		t.Errorf(
			"State = %+v, %v; want 1 to 702 with an hour of retention, the last stored at %v or later",
			state, err, all[701].Stored,
		)
	}
	events, _ := f.all("", 500)
	for _, m := range all {
		if m.Event == nil {
			if m.Seq != 701 || string(m.Command) != "{}" {
				t.Errorf("sequence %d is the command %s, want {} with 701", m.Seq, m.Command)
			}
			continue
		}
		e := events[0]
		events = events[1:]
		if m.Seq != e.Seq || m.Event.Cursor != e.Cursor ||
			string(m.Event.Envelope) != string(e.Envelope) ||
			m.Event.Type != "channel.observed" ||
			m.Event.EpochID != domain.NewEpochID(0xa) ||
			(m.Event.OrgID == "org") != (m.Seq == 702) {
			t.Fatalf("Read returned %+v, want %+v as in a page", m, e)
		}
		position, err := DecodeCursor(m.Event.Cursor)
		if err != nil || position.Seq != m.Seq || position.EpochID != domain.NewEpochID(0xa) ||
			position.Stored.UnixMilli() != m.Stored.UnixMilli() || position.Cursor() != e.Cursor {
			t.Fatalf("DecodeCursor = %+v, %v; want the sequence and time of %+v", position, err, m)
		}
	}
	since, err := s.ReadSince(t.Context(), hubA, all[701].Stored, 10)
	if err != nil || len(since) != 1 || since[0].Seq != 702 {
		t.Errorf("ReadSince the last message = %v, %v; want that message", since, err)
	}
	if none, err := s.ReadSince(t.Context(), hubA, time.Now().Add(time.Minute), 10); err != nil ||
		len(none) > 0 {
		t.Errorf("ReadSince a later time = %v, %v; want none", none, err)
	}
}

// List finds every log of every shard, although the broker lists them in several pages.
func TestSourceLists(t *testing.T) {
	t.Parallel()
	const many = 300 // the broker lists 256 at a time
	broker := streamstest.New(t)
	conns := broker.Connect(t)
	s := source(t, broker)
	js := streamstest.JetStream(t, conns.Shards[0])
	for n := range many {
		name := fmt.Sprintf("hub-list-test-%04d", n)
		_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
			Name: "HUB_" + name, Subjects: []string{"log." + name + ".>"},
			Storage: jetstream.MemoryStorage, MaxAge: time.Hour,
		})
		streamstest.Must(t, err)
	}
	for _, other := range []string{"HUB_no-hub", "ELSE"} {
		if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
			Name: other, Storage: jetstream.MemoryStorage,
		}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := js.Publish(t.Context(), "log.hub-list-test-0100.event.device", []byte("x"))
	streamstest.Must(t, err)
	found := map[domain.HubID]State{}
	for shard := range streamstest.Shards {
		err := s.List(t.Context(), shard, func(id domain.HubID, state State) { found[id] = state })
		streamstest.Must(t, err)
	}
	if len(found) != many || found["hub-list-test-0100"].Last != 1 ||
		found["hub-list-test-0299"] != (State{
			First: 1, Retention: time.Hour, LastStored: found["hub-list-test-0299"].LastStored,
		}) {
		t.Errorf(
			"%d logs with states %+v and %+v, want %d with last sequences 1 and 0", len(found),
			found["hub-list-test-0100"], found["hub-list-test-0299"], many,
		)
	}
}
