package bench

import (
	"fmt"
	"time"

	"hubcloud/test/harness"
)

// measureFeedMemory compares the memory of one reader of an organization's feed with that of single
// event streams, one for each of the same hubs. Each gets an event of each hub. What the service
// grows by without a reader, with the same events, is no part of either.
func measureFeedMemory(b *bench) {
	n := size(b, memorySize{1000, 1000, 5 * time.Second, 3}, memorySize{4, 4, 0, 1})
	s := startService(b, "--log-level", "warn")
	hubs := s.senders(n.count)
	r := row{
		Measure: fmt.Sprintf("memory of a reader of %d hubs", n.count), Unit: "KB",
		Aim: atMost(0.1), Difference: true,
	}
	var grown []float64
	for round := range n.rounds {
		unread := s.streamsMemory(b, &hubs, n, round, "feed memory without a reader", nil, 0, 0)
		feed := s.streamsMemory(b, &hubs, n, round, "feed memory",
			func(reading *readers) error {
				_, err := reading.open(s.Service.HTTP, s.feedRequest(""), false)
				return err
			}, 1, n.count)
		single := s.streamsMemory(b, &hubs, n, round, "feed memory limit",
			func(reading *readers) error {
				for _, h := range hubs.hubs {
					_, err := reading.open(s.Service.HTTP, s.streamRequest(h, ""), false)
					if err != nil {
						return err
					}
				}
				return nil
			}, n.count, 1)
		r.Values, r.Limits = append(r.Values, feed-unread), append(r.Limits, single-unread)
		grown = append(grown, unread)
	}
	r.Note = fmt.Sprintf(
		"the limit is that of %d event streams, one for each hub; the same events without a reader "+
			"take %s KB, which is subtracted on both sides", n.count, figure(median(grown)),
	)
	b.report.add(r)
}

// streamsMemory returns by how many KB a service that was just started grows with event streams,
// each of which has received so many events: one event of each hub is sent. open is nil for none.
func (s *service) streamsMemory(
	b *bench, from *senders, n memorySize, round int, name string, open func(*readers) error,
	streams, events int,
) float64 {
	b.Helper()
	s.restart()
	from.process = s.process
	s.each(from.hubs, from.connect)
	s.each(from.hubs, func(h *hub) error { return h.emit(1, 1) })
	harness.Elapse(n.settle)
	before := b.memory(s.process)
	emit := func() { s.each(from.hubs, func(h *hub) error { return h.emit(1, 1) }) }
	if open == nil {
		emit()
	} else {
		reading := newReaders(b)
		defer reading.closeStreams()
		if err := open(reading); err != nil {
			b.Fatal(err)
		}
		reading.awaitGreeted(streams)
		finished := reading.expect(streams, events)
		emit()
		select {
		case <-finished:
		case <-time.After(30 * time.Second):
			b.Fatal("events are missing 30 s after the last was sent")
		}
	}
	harness.Elapse(n.settle)
	after := b.memory(s.process)
	if round == 0 {
		b.heap(s.process, name)
	}
	s.each(from.hubs, func(h *hub) error { h.disconnect(); return nil })
	return (after - before) / 1e3
}
