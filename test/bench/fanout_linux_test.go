package bench

import (
	"net"
	"sync"
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

// fanOut is the result of one side in one round.
type fanOut struct {
	// total is the process's CPU for each delivery, and own the part that the readers cost.
	total, own float64
	latencies  []float64
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
		if _, err := reading.open(address, request); err != nil {
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
		harness.Must(b, sends[i%len(sends)]())
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
