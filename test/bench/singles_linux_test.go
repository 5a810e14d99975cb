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
	own, bare := s.senders(most), b.oneStreamSenders(most)
	for _, count := range n.hubs {
		b.singlesOf(s, own, bare, count, n)
	}
}

// singlesOf measures a number of the hubs, and of the bare broker's.
func (b *bench) singlesOf(s *service, own, bare senders, count int, n singlesSize) {
	name := fmt.Sprintf("single events of %d hubs", count)
	rate := row{Measure: name, Unit: "events/s", Aim: atLeast(0.5)}
	cpu := row{Measure: name + ", CPU an event", Unit: "µs", Aim: atMost(2.5)}
	for _, side := range []senders{own, bare} {
		hubs := side.hubs[:count]
		s.each(hubs, side.connect)
		s.each(hubs, func(h *hub) error { return h.emit(1, 1) })
		defer s.each(hubs, func(h *hub) error { h.disconnect(); return nil })
	}
	var p99, bareP99 []float64
	for round := range n.rounds {
		done := b.profile(own.process, name, n.during, round == 0)
		l := own.oneInFlight(b, own.hubs[:count], n.during)
		done()
		limit := bare.oneInFlight(b, bare.hubs[:count], n.during)
		rate.Values, rate.Limits = append(rate.Values, l.rate), append(rate.Limits, limit.rate)
		cpu.Values, cpu.Limits = append(cpu.Values, l.cpu/1e3), append(cpu.Limits, limit.cpu/1e3)
		p99 = append(p99, percentile(l.latencies, 0.99)/1e6)
		bareP99 = append(bareP99, percentile(limit.latencies, 0.99)/1e6)
	}
	rate.Note = fmt.Sprintf(
		"each hub with one event in flight, which is on the disk before its ack; the limit is the bare "+
			"broker of paced events, which syncs every two minutes; an ack takes at most %s ms for 99 %% "+
			"of the events, with the limit %s ms", figure(median(p99)), figure(median(bareP99)),
	)
	b.report.add(rate, cpu)
}
