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
	r := row{Measure: "memory of an idle hub", Unit: "KB", Aim: atMost(1.3), Difference: true}

	first := s.hubs(n.first)
	s.each(first, func(h *hub) error { return h.emit(1, 1) })
	sample := s.sampleOf(first[0])
	release := keep(b, first)
	harness.Elapse(n.settle)
	before := b.memory(s.process)
	hubs := s.hubs(n.count)
	s.each(hubs, func(h *hub) error { return h.emit(1, 1) })
	releaseMore := keep(b, hubs)
	harness.Elapse(n.settle)
	after := b.memory(s.process)
	b.heap(s.process, "hub memory")
	r.Values = append(r.Values, (after-before)/float64(n.count)/1e3)
	release()
	releaseMore()
	s.Stop()

	ca := newAuthority(b)
	broker := ca.broker(b.TempDir(), defaultShards)
	all := ca.hubs(broker, func(id string) string { return string(accountOf(id)) }, n.first+n.count)
	connect := func(some []*hub) (release func()) {
		c := streamsCommand{Sample: sample, Messages: 1}
		for _, h := range some {
			c.Hubs = append(c.Hubs, h.ID)
		}
		broker.do("/streams", c, nil)
		s.each(some, (*hub).connect)
		return keep(b, some)
	}
	release = connect(all[:n.first])
	harness.Elapse(n.settle)
	bareBefore := b.memory(broker.process)
	releaseMore = connect(all[n.first:])
	harness.Elapse(n.settle)
	bareAfter := b.memory(broker.process)
	b.heap(broker.process, "hub memory limit")
	r.Limits = append(r.Limits, (bareAfter-bareBefore)/float64(n.count)/1e3)
	release()
	releaseMore()
	r.Note = fmt.Sprintf(
		"%d hubs; the service has %.1f MB without them and %.1f MB with them, the bare broker "+
			"%.1f and %.1f",
		n.count, before/1e6, after/1e6, bareBefore/1e6, bareAfter/1e6,
	)
	b.report.add(r, r.against(100, atMost(1)))
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
			return s.Service.HTTP, s.streamRequest(hubs[i%len(hubs)], "")
		}, "reader memory"))
		web := startBare(b, roleWeb, nothing{})
		r.Limits = append(
			r.Limits,
			memoryOfReaders(b, n, web.process, func(i int) (string, string) {
				return web.ready.HTTP, fmt.Sprintf(
					"GET /stream/%d HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n",
					i%len(hubs), web.ready.HTTP, s.Tenant.Key,
				)
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
			if _, err := reading.open(address, request, false); err != nil {
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

// defaultShards is the service's default number of shards.
const defaultShards = 16
