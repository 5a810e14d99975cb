package bench

import (
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// ingestSize is the load of the measurement.
type ingestSize struct {
	hubs, events int // hubs, and events in a message
	// depths are the numbers of unacknowledged messages of each hub, measured one after the other.
	// The first is the figure of the table.
	depths []int
	rounds int
	during time.Duration
}

// measureIngest measures the events stored and acknowledged per second.
func measureIngest(b *bench) {
	n := size(
		b, ingestSize{64, 50, []int{4, 1}, 3, 4 * time.Second},
		ingestSize{2, 10, []int{2}, 1, 100 * time.Millisecond},
	)
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
			r.Note = fmt.Sprintf(
				"%d hubs, batches of %d, %d in flight each; the service used %.2f processors",
				n.hubs, n.events, depth, float64(s.cpu(b)-before)/float64(took),
			)
			done()
			done = b.profile(broker.process, r.Measure+" limit", n.during, round == 0)
			var stored float64
			broker.do("/ingest", limit, &stored)
			r.Limits = append(r.Limits, stored)
			done()
		}
		b.report.add(r)
		if i == 0 {
			b.report.add(r.against(100_000, atLeast(1)))
		}
	}
}

// ingest makes all hubs send and returns how many events were acknowledged, and in what time.
func (s *service) ingest(
	hubs []*hub, events, depth int, during time.Duration,
) (float64, time.Duration) {
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
		s.t.Fatalf("%v\nlast log lines of the service:\n%s", err, s.Log())
	}
	return float64(acknowledged.Load()), during
}
