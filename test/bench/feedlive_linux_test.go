package bench

import (
	"fmt"
	"time"

	"hubcloud/streams/streamstest"
)

// measureFeed measures readers of an organization's feed of many quiet hubs.
func measureFeed(b *bench) {
	n := size(
		b, fanOutSize{hubs: 500, readers: 200, rate: 1, rounds: 4, during: 5 * time.Second, whole: true},
		fanOutSize{hubs: 5, readers: 4, rate: 10, rounds: 1, during: 200 * time.Millisecond, whole: true},
	)
	s := startService(b, "--log-level", "warn")
	hubs := s.hubs(n.hubs)
	s.each(hubs, func(h *hub) error { return h.emit(1, 1) })
	stream := s.Tenant.Stream("/events/stream?type=channel.observed", "")
	<-stream.Messages // its position
	streamstest.Must(b, hubs[0].emit(1, 1))
	event := stream.Next(b, time.Minute)
	stream.Close()
	frame := fmt.Appendf(nil, "id: %s\nevent: %s\ndata: %s\n\n", event.ID, event.Event, event.Data)
	sends := make([]func() error, n.hubs)
	for i, h := range hubs {
		m := newEventsMessage(h, 1)
		sends[i] = func() error { return m.send(h) }
	}
	defer keep(b, hubs)()
	web := startBare(b, roleWeb, nothing{})
	topic, err := web.feeds(1, frame)
	streamstest.Must(b, err)
	ofFeed := func(int) (string, string) {
		return s.Service.HTTP, s.get("/events/stream?positions=true")
	}
	ofBare := func(int) (string, string) { return web.ready.HTTP, s.bareRequest(web, 0) }

	name := fmt.Sprintf("feed of %d hubs", n.hubs)
	cpu := row{Measure: name + ", CPU a delivery", Unit: "µs", Aim: atMost(1.5)}
	var total, latencies, bareLatencies []float64
	for round := range n.rounds {
		done := b.profile(s.process, name, 2*n.during, round == 0)
		quiet := pace(b, n, sends, s.process, nil)
		own := runFanOut(b, n, sends, s.process, quiet, ofFeed)
		done()
		done = b.profile(web.process, name+" limit", 2*n.during, round == 0)
		quiet = pace(b, n, topic, web.process, nil)
		limit := runFanOut(b, n, topic, web.process, quiet, ofBare)
		done()
		cpu.Values, cpu.Limits = append(cpu.Values, own.own/1e3), append(cpu.Limits, limit.own/1e3)
		total = append(total, own.total/1e3)
		latencies = append(latencies, median(own.latencies)/1e6)
		bareLatencies = append(bareLatencies, median(limit.latencies)/1e6)
	}
	cpu.Note = fmt.Sprintf(
		"%d readers of %d hubs × %d events/s; a difference: with what the events themselves cost "+
			"%.1f µs; latency p50 %s ms, of the bare server %s ms",
		n.readers, n.hubs, n.rate, median(total), figure(median(latencies)),
		figure(median(bareLatencies)),
	)
	b.report.add(cpu)
}
