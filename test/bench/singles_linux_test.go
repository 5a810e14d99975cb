package bench

import (
	"fmt"
	"slices"
	"time"
)

type singlesSize struct {
	hubs   []int
	rounds int
	during time.Duration
}

// measureSingles measures hubs that each have one event in flight.
func measureSingles(b *bench) {
	n := size(
		b, singlesSize{[]int{64, 1000, 5000}, 3, 4 * time.Second},
		singlesSize{[]int{2, 4}, 1, 100 * time.Millisecond},
	)
	s := startService(b, "--log-level", "warn")
	most := slices.Max(n.hubs)
	own := s.senders(most)
	former := b.formerSenders(s.sampleOf(own.hubs[0]), most)
	for _, count := range n.hubs {
		b.singlesOf(s, own, former, count, n)
	}
}

// singlesOf measures a number of the hubs of both sides.
func (b *bench) singlesOf(s *service, own, former senders, count int, n singlesSize) {
	name := fmt.Sprintf("single events of %d hubs", count)
	rate := row{Measure: name, Unit: "events/s", Aim: atLeast(4)}
	cpu := row{Measure: name + ", CPU an event", Unit: "µs", Aim: atMost(0.333)}
	written := row{Measure: name + ", written an event", Unit: "B", Aim: atMost(0.25)}
	var p99, formerP99 []float64
	for _, side := range []senders{own, former} {
		hubs := side.hubs[:count]
		s.each(hubs, side.connect)
		s.each(hubs, func(h *hub) error { return h.emit(1, 1) })
		defer func() { s.each(hubs, func(h *hub) error { h.disconnect(); return nil }) }()
	}
	for round := range n.rounds {
		done := b.profile(own.process, name, n.during, round == 0)
		l := own.oneInFlight(b, own.hubs[:count], n.during)
		done()
		done = b.profile(former.process, name+" limit", n.during, round == 0)
		limit := former.oneInFlight(b, former.hubs[:count], n.during)
		done()
		rate.Values, rate.Limits = append(rate.Values, l.rate), append(rate.Limits, limit.rate)
		cpu.Values, cpu.Limits = append(cpu.Values, l.cpu/1e3), append(cpu.Limits, limit.cpu/1e3)
		written.Values = append(written.Values, l.written)
		written.Limits = append(written.Limits, limit.written)
		p99 = append(p99, percentile(l.latencies, 0.99)/1e6)
		formerP99 = append(formerP99, percentile(limit.latencies, 0.99)/1e6)
	}
	rate.Note = fmt.Sprintf(
		"each hub with one event in flight; an ack takes at most %s ms for 99 %% of the events, "+
			"with the limit %s ms", figure(median(p99)), figure(median(formerP99)),
	)
	b.report.add(rate, cpu)
	if median(written.Limits) > 0 { // not on a file system in memory
		b.report.add(written)
	}
}
