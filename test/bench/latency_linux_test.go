package bench

import (
	"context"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/test/harness"
)

type latencySize struct {
	events, rounds int
}

// pause between two events, so that each finds an idle service
const pause = time.Millisecond

// measureLatency measures the time of one event from the hub to a reader.
func measureLatency(b *bench) {
	n := size(b, latencySize{400, 5}, latencySize{5, 1})
	s := startService(b, "--log-level", "warn")
	h := s.hubs(1)[0]
	s.each([]*hub{h}, func(h *hub) error { return h.emit(1, 1) })
	sample := s.sampleOf(h)

	ca := newAuthority(b)
	broker := ca.broker(b.TempDir(), defaultShards)
	echo := ca.hubs(broker, func(id string) string { return string(accountOf(id)) }, 1)[0]
	broker.do("/streams", streamsCommand{Sample: sample, Hubs: []string{echo.ID}, Messages: 1}, nil)
	broker.do("/answer", nothing{}, nil)
	if err := echo.connect(); err != nil {
		b.Fatal(err)
	}
	defer echo.disconnect()

	reading := s.follow(b, h, n.events)
	former := row{Measure: "latency, median, of the former program", Unit: "µs", Aim: atMost(1)}
	var formerEvents func() []float64
	if *formerFlag != "" {
		f := startProgram(b, *formerFlag, "--log-level", "warn")
		sender := f.hubs(1)[0]
		s.each([]*hub{sender}, func(h *hub) error { return h.emit(1, 1) })
		followed := f.follow(b, sender, n.events)
		formerEvents = func() []float64 { return sender.emitAndRead(b, followed, n.events) }
	}

	r := row{Measure: "latency, median", Unit: "µs", Aim: atMost(2)}
	tail := row{Measure: "latency, p99", Unit: "µs", Aim: atMost(2)}
	var trips, appends []float64
	for round := range n.rounds {
		done := b.profile(
			s.process, "latency", time.Duration(n.events)*1500*time.Microsecond, round == 0,
		)
		latencies := h.emitAndRead(b, reading, n.events)
		done()
		r.Values = append(r.Values, median(latencies)/1e3)
		tail.Values = append(tail.Values, percentile(latencies, 0.99)/1e3)
		if formerEvents != nil {
			former.Values = append(former.Values, median(latencies)/1e3)
			former.Limits = append(former.Limits, median(formerEvents())/1e3)
		}

		trip := echo.roundTrips(b, n.events)
		var stored []float64
		broker.do("/append", appendCommand{Sample: sample, Hub: echo.ID, Count: n.events}, &stored)
		trips, appends = append(trips, median(trip)/1e3), append(appends, median(stored)/1e3)
		r.Limits = append(r.Limits, (median(trip)+median(stored))/1e3)
		tail.Limits = append(tail.Limits, (percentile(trip, 0.99)+percentile(stored, 0.99))/1e3)
	}
	r.Note = fmt.Sprintf(
		"the limit is a round trip of %.0f µs and an append of %.0f µs", median(trips),
		median(appends),
	)
	b.report.add(r, tail)
	if formerEvents != nil {
		b.report.add(former)
	}
}

// follow opens an event stream of a hub and signals each of its events.
func (s *service) follow(b *bench, h *hub, events int) *readers {
	reading := newReaders(b)
	reading.arrived = make(chan struct{}, events)
	if _, err := reading.open(s.Service.HTTP, s.streamRequest(h, ""), false); err != nil {
		b.Fatal(err)
	}
	reading.awaitGreeted(1)
	return reading
}

// emitAndRead sends one event after the other, each once the one before has arrived, and returns
// their latencies.
func (h *hub) emitAndRead(b *bench, reading *readers, events int) []float64 {
	reading.expect(1, events)
	for range events {
		if err := h.emit(1, 1); err != nil {
			b.Fatal(err)
		}
		<-reading.arrived
		harness.Elapse(pause)
	}
	_, latencies := reading.counted()
	return latencies
}

// roundTrips returns the durations of round trips to the bare broker.
func (h *hub) roundTrips(b *bench, count int) []float64 {
	m := newEventsMessage(h, 1)
	var took []float64
	for range count {
		began := time.Now()
		if err := m.send(h); err != nil {
			b.Fatal(err)
		}
		if _, err := h.ack(); err != nil {
			b.Fatal(err)
		}
		took = append(took, float64(time.Since(began)))
		harness.Elapse(pause)
	}
	return took
}

// appendCommand makes the bare broker's process store one message after the other.
type appendCommand struct {
	Sample sample
	Hub    string
	Count  int
}

// append returns the duration of each append.
func (b *bareBroker) append(c appendCommand) ([]float64, error) {
	msg := c.Sample.message(c.Hub)
	nc := b.shard(c.Hub)
	var took []float64
	for range c.Count {
		began := time.Now()
		if _, err := jsapi.Append(context.Background(), nc, msg); err != nil {
			return nil, err
		}
		took = append(took, float64(time.Since(began)))
		harness.Elapse(pause)
	}
	return took, nil
}

// accountOf returns the account of a hub's log.
func accountOf(hub string) streams.Account {
	return streams.ShardAccount(streams.ShardOf(domain.HubID(hub), defaultShards))
}
