package bench

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
)

// storeCommand makes the bare broker store each event of a hub in the hub's own stream, synced, and
// acknowledge it once it is stored. So every event waits for a sync of its own.
type storeCommand struct{ Sample sample }

// store handles messages of hubs with one event each.
func (b *bareBroker) store(c storeCommand) (nothing, error) {
	for _, nc := range b.conns.Shards {
		s := &hubStore{nc: nc, sample: c.Sample, inbox: nc.NewInbox(), events: map[string]*nats.Msg{}}
		if _, err := nc.Subscribe(s.inbox+".*.*", s.acknowledge); err != nil {
			return nothing{}, err
		}
		if _, err := nc.Subscribe(streams.EventsSubject(streams.AnyHub), s.append); err != nil {
			return nothing{}, err
		}
		if err := nc.Flush(); err != nil {
			return nothing{}, err
		}
	}
	return nothing{}, nil
}

// hubStore stores the events of a shard's hubs.
type hubStore struct {
	nc     *nats.Conn
	sample sample
	// inbox is followed by the hub and the event's number in the subject of a stream's answer.
	inbox string
	// events has the stored event of each hub, which is always the same.
	events map[string]*nats.Msg
}

// append sends a hub's event to the hub's stream. Only one goroutine calls it.
func (s *hubStore) append(m *nats.Msg) {
	hub, _ := streams.ParseHubSubject(m.Subject)
	event, ok := s.events[string(hub)]
	if !ok {
		event = s.sample.message(string(hub))
		s.events[string(hub)] = event
	}
	_, number, _ := bytes.Cut(m.Data, []byte(`{"seq":`))
	event.Reply = fmt.Sprintf("%s.%s.%s", s.inbox, hub, number[:numberWidth])
	if err := s.nc.PublishMsg(event); err != nil {
		panic(err)
	}
}

// acknowledge sends a hub the ack of an event that is stored.
func (s *hubStore) acknowledge(m *nats.Msg) {
	if err := jetStreamError(m.Data); err != nil {
		panic(err)
	}
	hub, number, _ := strings.Cut(strings.TrimPrefix(m.Subject, s.inbox+"."), ".")
	ack := fmt.Appendf(nil, `{"log":%q,"through":%s}`, logName, number)
	if err := s.nc.Publish(streams.AckSubject(domain.HubID(hub)), ack); err != nil {
		panic(err)
	}
}
