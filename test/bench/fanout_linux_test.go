package bench

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"hubcloud/test/harness"
)

// fanOutSize is the number of hubs, readers and events.
type fanOutSize struct {
	hubs, readers int // readers of each hub
	rate          int // events per second and hub
	rounds        int
	during        time.Duration
	// whole reports that each reader reads the events of all hubs. Then there are readers in all.
	whole bool
}

func (n fanOutSize) events() int { return max(1, int(n.during.Seconds()*float64(n.hubs*n.rate))) }

// streams returns the number of readers in all, and each the number of events that each gets.
func (n fanOutSize) streams() int {
	if n.whole {
		return n.readers
	}
	return n.hubs * n.readers
}

func (n fanOutSize) each() int {
	if n.whole {
		return n.events()
	}
	return n.events() / n.hubs
}

// measureFanOutOneHub measures many readers of one busy hub.
func measureFanOutOneHub(b *bench) {
	measureFanOut(
		b,
		"fan-out, 1 hub",
		size(
			b, fanOutSize{hubs: 1, readers: 1000, rate: 50, rounds: 3, during: 4 * time.Second},
			fanOutSize{hubs: 1, readers: 10, rate: 50, rounds: 1, during: 200 * time.Millisecond},
		),
	)
}

// measureFanOutManyHubs measures few readers of each of many quiet hubs. Storing the events costs
// ten times as much as delivering them, so the difference needs more rounds to be significant.
func measureFanOutManyHubs(b *bench) {
	measureFanOut(
		b,
		"fan-out, 500 hubs",
		size(
			b, fanOutSize{hubs: 500, readers: 2, rate: 1, rounds: 7, during: 6 * time.Second},
			fanOutSize{hubs: 5, readers: 2, rate: 10, rounds: 1, during: 200 * time.Millisecond},
		),
	)
}

// fanOut is the result of one side in one round.
type fanOut struct {
	// total is the process's CPU for each delivery, and own the part that the readers cost.
	total, own float64
	latencies  []float64
}

func measureFanOut(b *bench, name string, n fanOutSize) {
	s := startService(b, "--log-level", "warn")
	hubs := s.hubs(n.hubs)
	s.each(hubs, func(h *hub) error { return h.emit(1, 1) })
	frames, err := s.frames(hubs[0], 1)
	if err != nil {
		b.Fatal(err)
	}
	acks := &ackTimes{}
	sends := make([]func() error, n.hubs)
	for i, h := range hubs {
		m := newEventsMessage(h, 1)
		var sent atomic.Int64
		h.acked = func() { acks.add(time.Now().UnixNano() - sent.Load()) }
		sends[i] = func() error { sent.Store(time.Now().UnixNano()); return m.send(h) }
	}
	defer keep(b, hubs)()
	web := startBare(b, roleWeb, nothing{})
	feeds, err := web.feeds(n.hubs, frames)
	if err != nil {
		b.Fatal(err)
	}

	cpu := row{Measure: name + ", CPU a delivery", Unit: "µs", Aim: atMost(1.3)}
	p50 := row{Measure: name + ", latency p50", Unit: "ms", Aim: atMost(2)}
	p99 := row{Measure: name + ", latency p99", Unit: "ms", Aim: atMost(2)}
	var total, bareTotal, bare50, bare99 []float64
	for round := range n.rounds {
		done := b.profile(s.process, name, 2*n.during, round == 0)
		acks.drain()
		quiet := pace(b, n, sends, s.process, nil)
		stored := acks.drain()
		of := func(i int) (string, string) { return s.Service.HTTP, s.streamRequest(hubs[i], "") }
		own := runFanOut(b, n, sends, s.process, quiet, of)
		done()
		done = b.profile(web.process, name+" limit", 2*n.during, round == 0)
		quiet = pace(b, n, feeds, web.process, nil)
		of = func(i int) (string, string) {
			return web.ready.HTTP, fmt.Sprintf(
				"GET /stream/%d HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", i,
				web.ready.HTTP, s.Tenant.Key,
			)
		}
		limit := runFanOut(b, n, feeds, web.process, quiet, of)
		done()

		cpu.Values, cpu.Limits = append(cpu.Values, own.own/1e3), append(cpu.Limits, limit.own/1e3)
		total, bareTotal = append(total, own.total/1e3), append(bareTotal, limit.total/1e3)
		bare50 = append(bare50, median(limit.latencies)/1e6)
		bare99 = append(bare99, percentile(limit.latencies, 0.99)/1e6)
		both := make([]float64, len(limit.latencies))
		for i, latency := range limit.latencies {
			both[i] = latency + stored[rand.IntN(len(stored))]
		}
		p50.Values = append(p50.Values, median(own.latencies)/1e6)
		p50.Limits = append(p50.Limits, median(both)/1e6)
		p99.Values = append(p99.Values, percentile(own.latencies, 0.99)/1e6)
		p99.Limits = append(p99.Limits, percentile(both, 0.99)/1e6)
	}
	cpu.Note = fmt.Sprintf(
		"%d hubs × %d readers × %d events/s; a difference: with what the events themselves "+
			"cost %.1f µs, of the bare server %.1f µs",
		n.hubs,
		n.readers,
		n.rate,
		median(total),
		median(bareTotal),
	)
	p50.Note = fmt.Sprintf(
		"of the limit, the bare server's own are %.2f ms, p99 %.2f ms; the rest is the event's "+
			"way into the log",
		median(bare50), median(bare99),
	)
	b.report.add(cpu, p50, p99)
}

// runFanOut opens the readers, sends the events, and waits until every reader has all of them.
func runFanOut(
	b *bench, n fanOutSize, sends []func() error, p process, quiet time.Duration,
	of func(int) (address, request string),
) fanOut {
	reading := newReaders(b)
	defer reading.closeStreams()
	for i := range n.streams() {
		address, request := of(i % n.hubs)
		if _, err := reading.open(address, request, false); err != nil {
			b.Fatal(err)
		}
	}
	reading.awaitGreeted(n.streams())
	b.rest() // until the work of connecting is done
	want := n.events() * n.readers
	finished := reading.expect(n.streams(), n.each())
	used := pace(b, n, sends, p, finished)
	got, latencies := reading.counted()
	if got != want {
		b.Fatalf("got %d deliveries, want %d", got, want)
	}
	return fanOut{
		total:     float64(used) / float64(want),
		own:       float64(used-quiet) / float64(want),
		latencies: latencies,
	}
}

// rest waits until the processes have finished earlier work.
func (b *bench) rest() {
	if b.full {
		harness.Elapse(500 * time.Millisecond)
	}
}

// pace sends the round's events, spread evenly over its time and over the hubs. It returns the CPU
// time that the process used until finished, or until a moment after the last event if finished is
// nil.
func pace(
	b *bench, n fanOutSize, sends []func() error, p process, finished <-chan struct{},
) time.Duration {
	before := p.cpu(b)
	began := time.Now()
	events := n.events()
	for i := range events {
		harness.Elapse(time.Until(began.Add(n.during * time.Duration(i) / time.Duration(events))))
		if err := sends[i%len(sends)](); err != nil {
			b.Fatal(err)
		}
	}
	if finished == nil {
		harness.Elapse(50 * time.Millisecond)
		return p.cpu(b) - before
	}
	select {
	case <-finished:
	case <-time.After(20 * time.Second):
		b.Fatal("events are missing 20 s after the last was sent")
	}
	return p.cpu(b) - before
}

// ackTimes collects the times until acks, in nanoseconds.
type ackTimes struct {
	mu    sync.Mutex
	times []float64
}

func (a *ackTimes) add(ns int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.times = append(a.times, float64(ns))
}

// drain returns the times so far and removes them.
func (a *ackTimes) drain() []float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	times := a.times
	a.times = nil
	return times
}

// frames returns a hub's oldest events as frames of an event stream.
func (s *service) frames(h *hub, count int) ([]byte, error) {
	page := s.Events(h.ID, "", count, 0)
	answer := s.Must("GET", fmt.Sprintf("/hubs/%s/events?limit=%d", h.ID, count), nil, 200)
	var frames bytes.Buffer
	rest := answer.Body
	for _, e := range page.Data {
		// the stored text of the envelope, from its cursor to the end of its data
		start := bytes.Index(rest, []byte(`{"cursor":"`+e.Cursor))
		end := bytes.Index(rest, e.Data)
		if start < 0 || end < start {
			return nil, fmt.Errorf("event with cursor %s not found in %q", e.Cursor, answer.Body)
		}
		end += len(e.Data) + len(`}`)
		fmt.Fprintf(&frames, "id: %s\nevent: %s\ndata: %s\n\n", e.Cursor, e.Type, rest[start:end])
		rest = rest[end:]
	}
	if len(page.Data) != count {
		return nil, fmt.Errorf("hub %s: got %d events, want %d", h.ID, len(page.Data), count)
	}
	return frames.Bytes(), nil
}

// feeds returns functions that send the frame, stamped with the time, to each topic of the bare
// server.
func (b *bare) feeds(topics int, frame []byte) ([]func() error, error) {
	conn, err := net.Dial("tcp", b.ready.Feed)
	if err != nil {
		return nil, err
	}
	b.t.Cleanup(func() { conn.Close() })
	feeds := make([]func() error, topics)
	for i := range feeds {
		packet := feedFrame(uint16(i), frame)
		at := offsetsAfter(packet, []byte(stampPrefix))[0]
		feeds[i] = func() error {
			patch(packet[at:at+stampWidth], uint64(time.Now().UnixMicro()))
			_, err := conn.Write(packet)
			return err
		}
	}
	return feeds, nil
}
