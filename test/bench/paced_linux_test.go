package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// measurePaced measures events of many hubs that send slowly, from the hub to two readers of its
// event stream.
func measurePaced(b *bench) {
	n := size(
		b, fanOutSize{hubs: 500, readers: 2, rate: 1, rounds: 3, during: 15 * time.Second},
		fanOutSize{hubs: 5, readers: 2, rate: 10, rounds: 1, during: 200 * time.Millisecond},
	)
	s := startService(b, "--log-level", "warn")
	own := newPaced(b, s, s.senders(n.hubs))
	bare := newPaced(b, nil, b.oneStreamSenders(n.hubs))
	p50 := row{Measure: "paced events, p50", Unit: "ms", Aim: atMost(2.5)}
	p99 := row{Measure: "paced events, p99", Unit: "ms", Aim: atMost(2.5)}
	cpu := row{Measure: "paced events, CPU an event", Unit: "µs", Aim: atMost(2.5)}
	for round := range n.rounds {
		done := b.profile(own.process, "paced events", n.during, round == 0)
		latencies, used := own.run(b, n)
		done()
		done = b.profile(bare.process, "paced events limit", n.during, round == 0)
		p50.Values = append(p50.Values, median(latencies)/1e6)
		p99.Values = append(p99.Values, percentile(latencies, 0.99)/1e6)
		cpu.Values = append(cpu.Values, used/1e3)
		latencies, used = bare.run(b, n)
		done()
		p50.Limits = append(p50.Limits, median(latencies)/1e6)
		p99.Limits = append(p99.Limits, percentile(latencies, 0.99)/1e6)
		cpu.Limits = append(cpu.Limits, used/1e3)
	}
	p50.Note = "500 hubs with an event a second each and two readers a hub, up to the readers; the " +
		"limit is a bare broker with MQTT, TLS and QoS 1, one stream of all hubs that " +
		"is synced every two minutes only, and subscribers in plain NATS"
	b.report.add(p50, p99, p99.against(5, atMost(1)), cpu)
}

// paced is hubs that send slowly. service is nil for a bare broker, whose readers subscribe to the
// subjects of the hubs.
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
		streamstest.Must(b, of.connect(h))
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

// run sends the events of a round. It returns their latencies, up to the reader, and the CPU time for
// each, all in nanoseconds.
func (p *paced) run(b *bench, n fanOutSize) (latencies []float64, cpu float64) {
	of := func(i int) (string, string) {
		return p.service.Service.HTTP, p.service.streamRequest(p.hubs[i])
	}
	if p.service == nil {
		of = func(i int) (string, string) {
			return p.subscribe, natsSubscribe(p.hubs[i])
		}
	}
	result := runFanOut(b, n, p.sends, p.process, 0, of)
	return result.latencies, result.total * float64(n.readers)
}

// natsSubscribe is what a client of plain NATS sends to get the events of a hub.
func natsSubscribe(h *hub) string {
	return fmt.Sprintf(
		"CONNECT {\"verbose\":false,\"user\":%q,\"pass\":%q}\r\nSUB %s 1\r\nPING\r\n", h.user,
		h.password, streams.EventsSubject(domain.HubID(h.ID)),
	)
}

// oneStreamSenders creates hubs of a bare broker as anybody could set it up: it stores the events of
// all hubs in one stream, with the default interval of syncs, and confirms each by MQTT's QoS 1.
func (b *bench) oneStreamSenders(count int) senders {
	b.Helper()
	ca := newAuthority(b)
	broker := ca.startBroker(bareBrokerConfig{Dir: b.TempDir(), Shards: 1, Unsynced: true})
	hubs := ca.hubs(broker, 1, count)
	for _, h := range hubs {
		h.confirmed = true
	}
	broker.do("/one-stream", oneStreamCommand{Copies: 1}, nil)
	return senders{
		process: broker.process, hubs: hubs, connect: (*hub).connect, subscribe: broker.ready.NATS,
	}
}

// oneStreamCommand creates a stream with the events of all hubs.
type oneStreamCommand struct{ Copies int }

func (b *bareBroker) oneStream(c oneStreamCommand) (nothing, error) {
	js, err := jetstream.New(b.conns.Shards[0])
	if err != nil {
		return nothing{}, err
	}
	config := jetstream.StreamConfig{
		Name: "EVENTS", Subjects: []string{streams.EventsSubject(streams.AnyHub)},
		MaxAge: 24 * time.Hour, Replicas: c.Copies,
	}
	// The servers of a cluster elect a leader first.
	streamstest.Poll(time.Minute, func() bool {
		_, err = js.CreateStream(context.Background(), config)
		return err == nil
	})
	return nothing{}, err
}
