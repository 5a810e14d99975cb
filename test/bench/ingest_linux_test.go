package bench

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"golang.org/x/sync/errgroup"
)

// ingestSize is how much is ingested.
type ingestSize struct {
	hubs, events int // hubs, and events in a message
	// depths are the numbers of messages that each hub has unacknowledged, measured one after the other; the first is the figure of the table.
	depths []int
	rounds int
	during time.Duration
}

// measureIngest compares events stored and acknowledged in a second.
func measureIngest(b *bench) {
	n := size(b, ingestSize{64, 50, []int{4, 1}, 3, 4 * time.Second}, ingestSize{2, 10, []int{2}, 1, 100 * time.Millisecond})
	s := startService(b, "--log-level", "warn")
	hubs := s.hubs(n.hubs)
	s.each(hubs, func(h *hub) error { return h.emit(2, n.events) })
	limit := ingestCommand{Sample: s.sampleOf(hubs[0]), Events: n.events, During: n.during}
	for _, h := range hubs {
		limit.Hubs = append(limit.Hubs, h.ID)
	}
	broker := newAuthority(b).broker(b.TempDir(), defaultShards)
	broker.do("/streams", streamsCommand{Sample: limit.Sample, Hubs: limit.Hubs}, nil)

	for i, depth := range n.depths {
		limit.Depth = depth
		r := row{Measure: "ingest", Unit: "events/s", Aim: atLeast(0.5)}
		if i > 0 {
			r.Measure += fmt.Sprintf(", %d message in flight", depth)
		}
		for round := range n.rounds {
			done := b.profile(s.process, r.Measure, n.during, round == 0)
			before := s.cpu(b)
			events, took := s.ingest(hubs, n.events, depth, n.during)
			r.Values = append(r.Values, events/took.Seconds())
			r.Note = fmt.Sprintf("%d hubs, batches of %d, %d in flight each; the service used %.2f processors", n.hubs, n.events, depth,
				float64(s.cpu(b)-before)/float64(took))
			done()
			done = b.profile(broker.process, r.Measure+" limit", n.during, round == 0)
			var stored float64
			broker.do("/ingest", limit, &stored)
			r.Limits = append(r.Limits, stored)
			done()
		}
		b.report.add(r)
	}
}

// ingest lets all hubs send for a while and gives how many events were acknowledged, and in what time.
func (s *service) ingest(hubs []*hub, events, depth int, during time.Duration) (float64, time.Duration) {
	s.t.Helper()
	var acknowledged atomic.Int64
	began := time.Now()
	deadline := began.Add(during)
	var group errgroup.Group
	for _, h := range hubs {
		group.Go(func() error {
			m := newEventsMessage(h, events)
			first := h.next
			for range depth {
				if err := m.send(h); err != nil {
					return err
				}
			}
			for {
				through, err := h.ack()
				if err != nil {
					return err
				}
				if time.Now().After(deadline) {
					acknowledged.Add(int64(through + 1 - first))
					if through == h.next-1 {
						return nil
					}
					return h.acknowledged()
				}
				for h.next-1-through <= uint64((depth-1)*events) {
					if err := m.send(h); err != nil {
						return err
					}
				}
			}
		})
	}
	if err := group.Wait(); err != nil {
		s.t.Fatalf("%v\nthe service's last lines:\n%s", err, s.Log())
	}
	return float64(acknowledged.Load()), during
}

// ingestCommand lets the bare broker's process publish batches: one publisher for each hub, Depth batches in flight each.
type ingestCommand struct {
	Sample sample
	Hubs   []string
	Events int
	Depth  int
	During time.Duration
}

// ingest gives events stored in a second.
func (b *bareBroker) ingest(c ingestCommand) (float64, error) {
	var stored atomic.Int64
	deadline := time.Now().Add(c.During)
	var publishers errgroup.Group
	for _, hub := range c.Hubs {
		publishers.Go(func() error {
			p := publisher{nc: b.shard(hub), sample: c.Sample, hub: hub, events: c.Events}
			n, err := p.run(c.Depth, deadline)
			stored.Add(n)
			return err
		})
	}
	err := publishers.Wait()
	return float64(stored.Load()) / c.During.Seconds(), err
}

// publisher stores atomic batches for one hub.
type publisher struct {
	nc     *nats.Conn
	sample sample
	hub    string
	events int
}

// run keeps that many batches in flight up to the deadline, and gives how many events were acknowledged by then.
func (p *publisher) run(depth int, deadline time.Time) (int64, error) {
	inbox := p.nc.NewInbox()
	answers := make(chan *nats.Msg, depth)
	sub, err := p.nc.ChanSubscribe(inbox, answers)
	if err != nil {
		return 0, err
	}
	defer sub.Unsubscribe()
	batches := make([][]*nats.Msg, depth) // the broker answers in order
	for i := range batches {
		batches[i] = p.batch(inbox)
		if err := p.send(batches[i]); err != nil {
			return 0, err
		}
	}
	var stored int64
	for i := 0; ; i = (i + 1) % depth {
		if err := p.wait(answers); err != nil {
			return stored, err
		}
		if time.Now().After(deadline) {
			for range depth - 1 {
				if err := p.wait(answers); err != nil {
					return stored, err
				}
			}
			return stored, nil
		}
		stored += int64(p.events)
		if err := p.send(batches[i]); err != nil {
			return stored, err
		}
	}
}

func (p *publisher) wait(answers <-chan *nats.Msg) error {
	select {
	case m := <-answers:
		return jetStreamError(m.Data)
	case <-time.After(20 * time.Second):
		return fmt.Errorf("hub %s: no answer to a batch", p.hub)
	}
}

// batch makes the messages of an atomic batch, as the service would store them.
func (p *publisher) batch(inbox string) []*nats.Msg {
	var msgs []*nats.Msg
	for i := range p.events {
		msg := p.sample.message(p.hub)
		msg.Header["Nats-Batch-Sequence"] = []string{fmt.Sprint(i + 1)}
		msg.Header["Nats-Batch-Id"] = []string{""}
		msgs = append(msgs, msg)
	}
	last := msgs[len(msgs)-1]
	last.Header["Nats-Batch-Commit"] = []string{"1"}
	last.Reply = inbox
	return msgs
}

func (p *publisher) send(batch []*nats.Msg) error {
	id := nuid.Next()
	for _, msg := range batch {
		msg.Header["Nats-Batch-Id"][0] = id
		if err := p.nc.PublishMsg(msg); err != nil {
			return err
		}
	}
	return nil
}
