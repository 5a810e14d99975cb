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

// measureSingles measures hubs that each have one event in flight. The limits are fixed figures.
func measureSingles(b *bench) {
	n := size(
		b, singlesSize{[]int{64, 1000, 5000}, 3, 4 * time.Second},
		singlesSize{[]int{2, 4}, 1, 100 * time.Millisecond},
	)
	s := startService(b, "--log-level", "warn")
	own := s.senders(slices.Max(n.hubs))
	for _, count := range n.hubs {
		b.singlesOf(s, own, count, n)
	}
}

// singlesOf measures a number of the hubs.
func (b *bench) singlesOf(s *service, own senders, count int, n singlesSize) {
	name := fmt.Sprintf("single events of %d hubs", count)
	rate := row{Measure: name, Unit: "events/s"}
	hubs := own.hubs[:count]
	s.each(hubs, own.connect)
	s.each(hubs, func(h *hub) error { return h.emit(1, 1) })
	defer s.each(hubs, func(h *hub) error { h.disconnect(); return nil })
	var p99, cpu, written []float64
	for round := range n.rounds {
		done := b.profile(own.process, name, n.during, round == 0)
		l := own.oneInFlight(b, hubs, n.during)
		done()
		rate.Values = append(rate.Values, l.rate)
		cpu, written = append(cpu, l.cpu/1e3), append(written, l.written)
		p99 = append(p99, percentile(l.latencies, 0.99)/1e6)
	}
	rate = rate.against(singlesRequired, atLeast(1))
	rate.Note = fmt.Sprintf(
		"each hub with one event in flight; an ack takes at most %s ms for 99 %% of the events; "+
			"%s µs of CPU and %s written bytes an event",
		figure(median(p99)), figure(median(cpu)), figure(median(written)),
	)
	b.report.add(rate)
}

// singlesRequired is the events a second of hubs with one event in flight each, each of which is
// synced to the disk before its ack.
const singlesRequired = 5000
