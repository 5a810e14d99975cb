package bench

import (
	"fmt"
	"time"

	"hubcloud/test/harness"
)

// memorySize is the number of idle hubs or readers.
type memorySize struct {
	count int
	// first are created before the first measurement, so that fixed costs do not count. Readers are
	// spread over that many hubs.
	first int
	// settle is the time until buffers of recent writes are freed.
	settle time.Duration
	rounds int
}

// measureHubMemory measures the memory of an idle connected hub.
func measureHubMemory(b *bench) {
	n := size(b, memorySize{1000, 20, 20 * time.Second, 1}, memorySize{10, 2, 0, 1})
	s := startService(b, "--log-level", "warn")
	r := row{Measure: "memory of an idle hub", Unit: "KB", Difference: true}
	first := s.hubs(n.first)
	s.each(first, func(h *hub) error { return h.emit(1, 1) })
	defer keep(b, first)()
	harness.Elapse(n.settle)
	before := b.memory(s.process)
	hubs := s.hubs(n.count)
	s.each(hubs, func(h *hub) error { return h.emit(1, 1) })
	defer keep(b, hubs)()
	harness.Elapse(n.settle)
	after := b.memory(s.process)
	b.heap(s.process, "hub memory")
	r.Values = append(r.Values, (after-before)/float64(n.count)/1e3)
	r = r.against(100, atMost(1))
	r.Note = fmt.Sprintf(
		"%d hubs; the service has %.1f MB without them and %.1f MB with them", n.count, before/1e6,
		after/1e6,
	)
	b.report.add(r)
}

// measureReaderMemory measures the memory of an idle event stream.
func measureReaderMemory(b *bench) {
	n := size(b, memorySize{2000, 100, 5 * time.Second, 2}, memorySize{20, 2, 0, 1})
	s := startService(b, "--log-level", "warn")
	hubs := s.hubs(n.first)
	s.each(hubs, func(h *hub) error { h.disconnect(); return nil })
	r := row{
		Measure: "memory of an idle reader",
		Unit:    "KB",
		Aim:     atMost(1.5),
		Note:    fmt.Sprintf("%d event streams of %d hubs", n.count, n.first),

		Difference: true,
	}
	for round := range n.rounds {
		if round > 0 {
			s.restart()
		}
		r.Values = append(r.Values, memoryOfReaders(b, n, s.process, func(i int) (string, string) {
			return s.Service.HTTP, s.streamRequest(hubs[i%len(hubs)])
		}, "reader memory"))
		web := startBare(b, roleWeb, nothing{})
		r.Limits = append(
			r.Limits,
			memoryOfReaders(b, n, web.process, func(i int) (string, string) {
				return web.ready.HTTP, s.bareRequest(web, i%len(hubs))
			}, "reader memory limit"),
		)
		web.stop()
	}
	b.report.add(r)
}

// memoryOfReaders returns the growth of a process for each stream, in KB.
func memoryOfReaders(
	b *bench, n memorySize, p process, of func(i int) (address, request string), name string,
) float64 {
	open := func(count int) (closeAll func()) {
		reading := newReaders(b)
		for i := range count {
			address, request := of(i)
			if _, err := reading.open(address, request); err != nil {
				b.Fatal(err)
			}
		}
		reading.awaitGreeted(count)
		return reading.closeStreams
	}
	open(n.first)() // fixed costs
	harness.Elapse(n.settle)
	before := b.memory(p)
	closeAll := open(n.count)
	defer closeAll()
	harness.Elapse(n.settle)
	after := b.memory(p)
	b.heap(p, name)
	return (after - before) / float64(n.count) / 1e3
}
