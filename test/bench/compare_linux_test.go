package bench

import (
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/test/harness"
)

// rival is a server under comparison. Topics are numbered; a topic of the service is a hub.
type rival struct {
	process
	name, address string
	// stream returns the request for a topic's event stream: from now on, or after a position.
	stream func(topic int, after string) string
	// publisher returns a function that publishes an event, stamped with the time, and waits until
	// the server has confirmed it; and one that closes the connection.
	publisher func(topic int) (publish func() error, closed func(), err error)
	// position returns the position of the topic's end. The server may publish an event for it.
	position func(topic int) (string, error)
}

// compareSize is the size of a comparison.
type compareSize struct {
	idle, idleSettle    int // streams, and seconds until their memory is measured
	readers, rate       int // of one topic, and events a second
	resuming, behind    int // readers that reconnect at once, and missed events of each
	publishers          int // with one event in flight each
	fanOutFor, storeFor time.Duration
	rounds              int
}

// TestCompare measures the service beside other servers and a bare server of net/http, under the
// same loads in the same run, and prints a table in Markdown (`make compare`).
func TestCompare(t *testing.T) {
	if *compareFlag == "" {
		t.Skip("compares only with -bench.compare (`make compare`)")
	}
	b := &bench{TB: t, full: *fullFlag}
	n := size(
		b, compareSize{1000, 4, 1000, 50, 500, 100, 64, 4 * time.Second, 3 * time.Second, 3},
		compareSize{5, 0, 5, 50, 5, 10, 2, 100 * time.Millisecond, 100 * time.Millisecond, 1},
	)
	rivals := startRivals(b, n)
	c := &comparison{size: n, rivals: rivals}
	c.measure(b, "memory of an idle reader, KB", n.rounds, compareMemory)
	c.measureFanOut(b)
	c.measure(b, fmt.Sprintf("resume of %d readers, ms", n.resuming), n.rounds, c.resume)
	c.measureStored(b)
	fmt.Printf("\n%s\n%s\n", c.table(), strings.Join(c.notes, "\n"))
	for _, line := range c.lines {
		for i, values := range line.values {
			if v := median(values); math.IsNaN(v) || b.full && v <= 0 {
				t.Errorf("%s, %s: %v", line.measure, rivals[i].name, values)
			}
		}
	}
}

// comparison collects the lines of the table. The last rival is the bare server.
type comparison struct {
	size   compareSize
	rivals []rival
	lines  []*comparedLine
	notes  []string
}

// comparedLine has the values of all rounds of each rival.
type comparedLine struct {
	measure string
	values  [][]float64
}

func (c *comparison) line(measure string) *comparedLine {
	l := &comparedLine{measure: measure, values: make([][]float64, len(c.rivals))}
	c.lines = append(c.lines, l)
	return l
}

func (c *comparison) measure(
	b *bench, name string, rounds int, of func(*bench, compareSize, rival) float64,
) {
	l := c.line(name)
	for range rounds {
		for i, r := range c.rivals {
			b.rest()
			l.values[i] = append(l.values[i], of(b, c.size, r))
		}
	}
}

// table returns the medians, with their ratios to the bare server, in Markdown.
func (c *comparison) table() string {
	var t strings.Builder
	t.WriteString("| measure |")
	for _, r := range c.rivals {
		t.WriteString(" " + r.name + " |")
	}
	t.WriteString("\n|---|" + strings.Repeat("---|", len(c.rivals)) + "\n")
	last := len(c.rivals) - 1
	for _, l := range c.lines {
		t.WriteString("| " + l.measure + " |")
		for i, values := range l.values {
			fmt.Fprintf(&t, " %s", figure(median(values)))
			if i != last {
				fmt.Fprintf(&t, " (%.2f)", median(values)/median(l.values[last]))
			}
			t.WriteString(" |")
		}
		t.WriteString("\n")
	}
	return t.String()
}

// openStreams opens event streams of a rival, all of one topic.
func openStreams(b *bench, r rival, count int) *readers {
	b.Helper()
	reading := newReaders(b)
	reading.stamped = true
	for range count {
		if _, err := reading.open(r.address, r.stream(0, ""), false); err != nil {
			b.Fatalf("%s: %v", r.name, err)
		}
	}
	reading.awaitGreeted(count)
	return reading
}

func compareMemory(b *bench, n compareSize, r rival) float64 {
	b.Helper()
	settle := time.Duration(n.idleSettle) * time.Second
	openStreams(b, r, max(1, n.idle/10)).closeStreams() // fixed costs
	harness.Elapse(settle)
	before := b.memory(r.process)
	reading := openStreams(b, r, n.idle)
	defer reading.closeStreams()
	harness.Elapse(settle)
	return (b.memory(r.process) - before) / float64(n.idle) / 1e3
}

// measureFanOut measures one topic with many readers.
func (c *comparison) measureFanOut(b *bench) {
	n := fanOutSize{hubs: 1, readers: c.size.readers, rate: c.size.rate, during: c.size.fanOutFor}
	cpu := c.line("CPU a delivery, µs")
	p50, p99 := c.line("latency p50, ms"), c.line("latency p99, ms")
	for range c.size.rounds {
		for i, r := range c.rivals {
			reading := openStreams(b, r, n.readers)
			publish, closed, err := r.publisher(0)
			if err != nil {
				b.Fatalf("%s: %v", r.name, err)
			}
			b.rest()
			finished := reading.expect(n.streams(), n.each())
			used := pace(b, n, []func() error{publish}, r.process, finished)
			got, latencies := reading.counted()
			c.noteDropped(r, reading)
			reading.closeStreams()
			closed()
			cpu.values[i] = append(cpu.values[i], float64(used)/float64(got)/1e3)
			p50.values[i] = append(p50.values[i], median(latencies)/1e6)
			p99.values[i] = append(p99.values[i], percentile(latencies, 0.99)/1e6)
		}
	}
}

// resume returns the milliseconds until all readers have what they missed.
func (c *comparison) resume(b *bench, n compareSize, r rival) float64 {
	b.Helper()
	after, err := r.position(0)
	if err != nil {
		b.Fatalf("%s: %v", r.name, err)
	}
	publish, closed, err := r.publisher(0)
	if err != nil {
		b.Fatalf("%s: %v", r.name, err)
	}
	defer closed()
	for range n.behind {
		if err := publish(); err != nil {
			b.Fatalf("%s: %v", r.name, err)
		}
	}
	b.rest()
	reading := newReaders(b)
	defer reading.closeStreams()
	reading.stamped = true
	took := catchUp(b, reading, resumeSize{readers: n.resuming, behind: n.behind},
		func(int) (string, string) { return r.address, r.stream(0, after) })
	c.noteDropped(r, reading)
	return took
}

// noteDropped notes readers that a server has disconnected: the values do not count them.
func (c *comparison) noteDropped(r rival, reading *readers) {
	reading.mu.Lock()
	defer reading.mu.Unlock()
	if reading.dropped > 0 {
		c.notes = append(c.notes, fmt.Sprintf("%s ended %d event streams", r.name, reading.dropped))
	}
}

// measureStored measures publishers that each wait for the server's answer before the next event.
func (c *comparison) measureStored(b *bench) {
	rate, cpu := c.line("events in, a second"), c.line("CPU an event in, µs")
	p99 := c.line("answer to an event in p99, ms")
	for range c.size.rounds {
		for i, r := range c.rivals {
			b.rest()
			l := storeEvents(b, c.size, r)
			rate.values[i] = append(rate.values[i], l.rate)
			cpu.values[i] = append(cpu.values[i], l.cpu/1e3)
			p99.values[i] = append(p99.values[i], percentile(l.latencies, 0.99)/1e6)
		}
	}
}

func storeEvents(b *bench, n compareSize, r rival) load {
	b.Helper()
	publishes := make([]func() error, n.publishers)
	for topic := range publishes {
		publish, closed, err := r.publisher(topic)
		if err != nil {
			b.Fatalf("%s: %v", r.name, err)
		}
		defer closed()
		publishes[topic] = publish
	}
	var mu sync.Mutex
	var l load
	used := r.cpu(b)
	began := time.Now()
	var group errgroup.Group
	for _, publish := range publishes {
		group.Go(func() error {
			var latencies []float64
			for time.Since(began) < n.storeFor {
				sent := time.Now()
				if err := publish(); err != nil {
					return err
				}
				latencies = append(latencies, float64(time.Since(sent)))
			}
			mu.Lock()
			defer mu.Unlock()
			l.latencies = append(l.latencies, latencies...)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatalf("%s: %v", r.name, err)
	}
	events := float64(len(l.latencies))
	l.rate = events / time.Since(began).Seconds()
	l.cpu = float64(r.cpu(b)-used) / events
	return l
}

// startRivals starts the service, the servers in the folder of -bench.compare, and a bare server.
func startRivals(b *bench, n compareSize) []rival {
	b.Helper()
	service, event := hubcloudRival(b, n.publishers)
	rivals := []rival{service}
	for _, other := range otherServers {
		path := *compareFlag + "/" + other.program
		if _, err := os.Stat(path); err != nil {
			b.Logf("%s is left out: %v", other.name, err)
			continue
		}
		rivals = append(rivals, startOther(b, other, path, event))
	}
	return append(rivals, bareRival(b, n.behind, event))
}
