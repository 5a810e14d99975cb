package bench

import (
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/streams/streamstest"
)

// senders are hubs and the process that stores what they send: the service, or
// a bare broker that stores each event on its own.
type senders struct {
	process
	hubs []*hub
	// connect connects a hub and waits until it may send.
	connect func(*hub) error
	// subscribe is the address for clients of a bare broker in plain NATS.
	subscribe string
}

// senders creates hubs of the service, which each have an event and are not connected.
func (s *service) senders(count int) senders {
	s.t.Helper()
	const some = 500 // connected at a time
	made := senders{process: s.process, connect: func(h *hub) error {
		if err := h.connect(); err != nil {
			return err
		}
		return h.hello()
	}}
	for len(made.hubs) < count {
		hubs := s.hubs(min(some, count-len(made.hubs)))
		s.each(hubs, func(h *hub) error { return h.emit(1, 1) })
		s.each(hubs, func(h *hub) error { h.disconnect(); return nil })
		made.hubs = append(made.hubs, hubs...)
	}
	return made
}

// load is what hubs sent in a round.
type load struct {
	// rate is the acknowledged events per second.
	rate float64
	// cpu is the CPU time for each event, in nanoseconds.
	cpu float64
	// latencies has the time from each event's sending to its ack, in nanoseconds.
	latencies []float64
}

// oneInFlight makes hubs send one event after the other, each once the one before is acknowledged.
func (s senders) oneInFlight(b *bench, hubs []*hub, during time.Duration) load {
	b.Helper()
	var mu sync.Mutex
	var l load
	cpu, began := s.cpu(b), time.Now()
	deadline := began.Add(during)
	var group errgroup.Group
	for _, h := range hubs {
		group.Go(func() error {
			m := newEventsMessage(h, 1)
			var latencies []float64
			for sent := began; sent.Before(deadline); {
				sent = time.Now()
				if err := m.send(h); err != nil {
					return err
				}
				if err := h.acknowledged(); err != nil {
					return err
				}
				latencies = append(latencies, float64(time.Since(sent)))
			}
			mu.Lock()
			defer mu.Unlock()
			l.latencies = append(l.latencies, latencies...)
			return nil
		})
	}
	streamstest.Must(b, group.Wait())
	events := float64(len(l.latencies))
	l.rate = events / time.Since(began).Seconds()
	l.cpu = float64(s.cpu(b)-cpu) / events
	return l
}
