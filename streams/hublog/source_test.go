package hublog

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	s := NewSource(nc, streamstest.Shards)
	t.Cleanup(s.Close)
	return s
}

// TestSourceReads: what comes from outside has the cursors and envelopes that pages have, events
// and commands each as they are.
func TestSourceReads(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	f := startOn(t, broker.Connect(t), Config{})
	s := source(t, broker)
	if state, err := s.State(t.Context(), hubA, 0); err != nil || state != (State{First: 1}) {
		t.Errorf("without a log: %+v, %v", state, err)
	}
	if messages, err := s.Read(t.Context(), hubA, 1, 10); err != nil || len(messages) > 0 {
		t.Errorf("without a log: %v, %v", messages, err)
	}
	last := f.append(hubA, 0, 1, 700)
	f.command(hubA)
	record := record(hubA, domain.NewEpochID(0xa), 701)
	record.OrgID = "org"
	if _, err := f.Append(t.Context(), hubA, last, []Record{record}); err != nil {
		t.Fatal(err)
	}
	var all []Message
	for from := uint64(1); ; {
		messages, err := s.Read(t.Context(), hubA, from, MaxRead+1)
		if err != nil || len(messages) > MaxRead {
			t.Fatalf("%d messages, %v", len(messages), err)
		}
		if len(messages) == 0 {
			break
		}
		all = append(all, messages...)
		from = messages[len(messages)-1].Seq + 1
	}
	state, err := s.State(t.Context(), hubA, 0)
	if err != nil || state.First != 1 || state.Last != 702 || state.Retention != time.Hour ||
		!state.LastStored.Equal(all[701].Stored) {
		t.Errorf("%+v, %v", state, err)
	}
	var events []domain.EncodedEvent
	for after := ""; len(events) < 701; {
		page := f.page(hubA, after, 500)
		events, after = append(events, page.Events...), page.Next
	}
	for _, m := range all {
		if m.Event == nil {
			if m.Seq != 701 || string(m.Command) != "{}" {
				t.Errorf("sequence %d is a command, %s", m.Seq, m.Command)
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
			t.Fatalf("%+v, and a page has %+v", m, e)
		}
		position, err := DecodeCursor(m.Event.Cursor)
		if err != nil || position.Seq != m.Seq || position.EpochID != domain.NewEpochID(0xa) ||
			position.Stored.UnixMilli() != m.Stored.UnixMilli() {
			t.Fatalf("%+v, %v", position, err)
		}
		if got := position.Cursor(); got != e.Cursor {
			t.Fatalf("cursor of the position is %s, want %s", got, e.Cursor)
		}
	}
	since, err := s.ReadSince(t.Context(), hubA, all[701].Stored, 10)
	if err != nil || len(since) != 1 || since[0].Seq != 702 {
		t.Errorf("since the last: %v, %v", since, err)
	}
	if none, err := s.ReadSince(t.Context(), hubA, time.Now().Add(time.Minute), 10); err != nil ||
		len(none) > 0 {
		t.Errorf("since later: %v, %v", none, err)
	}
}

// TestSourceLists checks that List finds every log of every shard, over several of the broker's pages.
func TestSourceLists(t *testing.T) {
	t.Parallel()
	const many = 700 // the broker gives 256 at a time
	broker := streamstest.New(t)
	conns := broker.Connect(t)
	s := source(t, broker)
	js, err := jetstream.New(conns.Shards[0])
	if err != nil {
		t.Fatal(err)
	}
	for n := range many {
		name := fmt.Sprintf("hub-list-test-%04d", n)
		_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
			Name: "HUB_" + name, Subjects: []string{"log." + name + ".>"},
			Storage: jetstream.MemoryStorage, MaxAge: time.Hour,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, other := range []string{"HUB_no-hub", "ELSE"} {
		if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
			Name: other, Storage: jetstream.MemoryStorage,
		}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := js.Publish(t.Context(), "log.hub-list-test-0300.event.device", []byte("x")); err != nil {
		t.Fatal(err)
	}
	found := map[domain.HubID]State{}
	for shard := range streamstest.Shards {
		if err := s.List(t.Context(), shard, func(id domain.HubID, state State) { found[id] = state }); err != nil {
			t.Fatal(err)
		}
	}
	if len(found) != many || found["hub-list-test-0300"].Last != 1 ||
		found["hub-list-test-0699"] != (State{
			First: 1, Retention: time.Hour, LastStored: found["hub-list-test-0699"].LastStored,
		}) {
		t.Errorf(
			"%d logs; %+v, %+v", len(found), found["hub-list-test-0300"],
			found["hub-list-test-0699"],
		)
	}
}
