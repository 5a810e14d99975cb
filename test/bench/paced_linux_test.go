package bench

import (
	"sync/atomic"
	"time"
)

// measurePaced measures events of many hubs that send slowly, from the hub to the reader of its
// event stream.
func measurePaced(b *bench) {
	n := size(
		b, fanOutSize{hubs: 500, readers: 1, rate: 1, rounds: 3, during: 15 * time.Second},
		fanOutSize{hubs: 5, readers: 1, rate: 10, rounds: 1, during: 200 * time.Millisecond},
	)
	s := startService(b, "--log-level", "warn")
	own := newPaced(b, s, s.senders(n.hubs))
	var former *paced
	p50Aim, cpuAim := atMost(2), atMost(3)
	if *formerFlag != "" {
		p50Aim, cpuAim = atMost(1), atMost(1)
		f := startProgram(b, *formerFlag, "--log-level", "warn")
		former = newPaced(b, f, f.senders(n.hubs))
	} else {
		former = newPaced(b, nil, b.formerSenders(s.sampleOf(own.hubs[0]), n.hubs))
	}
	p50 := row{Measure: "paced events, p50", Unit: "ms", Aim: p50Aim}
	p99 := row{Measure: "paced events, p99", Unit: "ms", Aim: p50Aim}
	cpu := row{Measure: "paced events, CPU an event", Unit: "µs", Aim: cpuAim}
	for round := range n.rounds {
		done := b.profile(own.process, "paced events", n.during, round == 0)
		latencies, used := own.run(b, n)
		done()
		p50.Values = append(p50.Values, median(latencies)/1e6)
		p99.Values = append(p99.Values, percentile(latencies, 0.99)/1e6)
		cpu.Values = append(cpu.Values, used/1e3)
		latencies, used = former.run(b, n)
		p50.Limits = append(p50.Limits, median(latencies)/1e6)
		p99.Limits = append(p99.Limits, percentile(latencies, 0.99)/1e6)
		cpu.Limits = append(cpu.Limits, used/1e3)
	}
	p50.Note = "500 hubs with an event a second each and an event stream; without a former " +
		"program the limit is a bare broker that stores each event on its own, up to the ack"
	b.report.add(p50, p99, p99.against(5, atMost(1)), cpu)
}

// paced is hubs that send slowly. service is nil for a bare broker, which has no event streams.
type paced struct {
	senders
	service *service
	sends   []func() error
	acks    ackTimes
}

// newPaced connects the hubs for the rest of the measurement.
func newPaced(b *bench, s *service, of senders) *paced {
	p := &paced{senders: of, service: s}
	for _, h := range of.hubs {
		if err := of.connect(h); err != nil {
			b.Fatal(err)
		}
		m := newEventsMessage(h, 1)
		var sent atomic.Int64
		h.acked = func() { p.acks.add(time.Now().UnixNano() - sent.Load()) }
		p.sends = append(p.sends, func() error {
			sent.Store(time.Now().UnixNano())
			return m.send(h)
		})
	}
	b.Cleanup(keep(b, of.hubs))
	return p
}

// run sends the events of a round. It returns their latencies, up to the reader or the ack, and the
// CPU time for each, all in nanoseconds.
func (p *paced) run(b *bench, n fanOutSize) (latencies []float64, cpu float64) {
	if p.service == nil {
		p.acks.drain()
		used := pace(b, n, p.sends, p.process, nil)
		return p.acks.drain(), float64(used) / float64(n.events())
	}
	result := runFanOut(b, n, p.sends, p.process, 0, func(i int) (string, string) {
		return p.service.Service.HTTP, p.service.streamRequest(p.hubs[i], "")
	})
	return result.latencies, result.total
}
