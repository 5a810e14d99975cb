package bench

import (
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"
)

// ingestCommand makes the bare broker's process publish batches: one publisher for each hub, each
// with Depth batches in flight.
type ingestCommand struct {
	Sample sample
	Hubs   []string
	Events int
	Depth  int
	During time.Duration
}

// ingest returns the events stored per second.
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

// run keeps depth batches in flight until the deadline and returns the number of events that were
// acknowledged by then.
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
		// The first batch counts in any case: on a busy machine its answer may come after the
		// deadline.
		if stored > 0 && time.Now().After(deadline) {
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

// batch returns the messages of an atomic batch, as the service would store them.
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
	id := rand.Text()
	for _, msg := range batch {
		msg.Header["Nats-Batch-Id"][0] = id
		if err := p.nc.PublishMsg(msg); err != nil {
			return err
		}
	}
	return nil
}
