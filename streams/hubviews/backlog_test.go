package hubviews

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams/journal"
	"hubcloud/streams/streamstest"
)

// gate holds back what the broker sends to the Views while it is closed.
type gate struct {
	mu     sync.Mutex
	opened chan struct{}
}

// newGate makes the Views of a fixture connect through a gate, which is open.
func newGate(f *fixture) *gate {
	f.Helper()
	g := &gate{opened: make(chan struct{})}
	close(g.opened)
	rewriter := streamstest.NewRewriter(f.broker)
	rewriter.Change(func(payload []byte) []byte {
		g.mu.Lock()
		opened := g.opened
		g.mu.Unlock()
		<-opened
		return bytes.Clone(payload)
	})
	f.own = f.broker.Connect(f, nats.InProcessServer(rewriter))
	f.Cleanup(g.open)
	return g
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opened = make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.opened:
	default:
		close(g.opened)
	}
}

// fill adds commits until the backlog is full, and returns the result of the last one, which waits
// until there is room.
func (f *fixture) fill(next func() journal.Commit) (waiting <-chan error) {
	f.Helper()
	limit := f.Views.cfg.MaxBacklogBytes
	for {
		c := next()
		result := make(chan error, 1)
		go func() { result <- f.Add(f.Context(), c) }()
		for wait := true; wait; {
			select {
			case err := <-result:
				if err != nil {
					f.Fatal(err)
				}
				wait = false
			case <-time.After(200 * time.Millisecond):
				if used := f.count(f.Views.cfg.Metrics.backlogBytes); used > limit/2 {
					return result
				}
			}
			if used := f.count(f.Views.cfg.Metrics.backlogBytes); used > limit {
				f.Fatalf("backlog: has %d bytes, want at most %d", used, limit)
			}
		}
	}
}

// TestBackPressure stops the broker's answers while records are added. Add must wait once the
// backlog is full, and everything must be written once the broker answers again.
func TestBackPressure(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := newGate(f)
	f.cfg.MaxBacklogBytes = 1 << 20
	f.start()
	all := hubs(20)
	f.write(all...)
	f.flush()
	g.close()
	waiting := f.fill(func() journal.Commit { return f.commitSized(1000, all...) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Flush(ctx); err == nil {
		t.Error("Flush while nothing can be written: got no error")
	}
	unwritten := f.Views.cfg.Metrics.unwritten.WithLabelValues("0")
	streamstest.Eventually(t, "the metric counts the commits that are not written", func() bool {
		return f.count(unwritten) > 10
	})
	g.open()
	if err := <-waiting; err != nil {
		t.Fatal(err)
	}
	f.flush()
	for _, id := range all {
		f.check(id, 1)
	}
	streamstest.Eventually(t, "the metric counts no commits", func() bool {
		return f.count(unwritten) == 0
	})
}

// TestManyHubs adds records of 10,000 hubs that have no views yet, while the broker does not
// answer. The memory that they take must be bounded by the backlog's limit.
//
// It measures the heap, so no other test may run at the same time.
func TestManyHubs(t *testing.T) {
	f := newFixture(t)
	g := newGate(f)
	const limit = 8 << 20
	f.cfg.MaxBacklogBytes = limit
	f.start()
	g.close()
	before := heapBytes()
	all := hubs(10_000)
	seq := f.End()
	records := map[domain.HubID]uint64{}
	waiting := f.fill(func() journal.Commit {
		// The Views never read these commits from the journal, so they are not stored there.
		seq++
		some := make([]journal.Record, 500)
		for i := range some {
			id := all[(int(seq)*len(some)+i)%len(all)]
			records[id]++
			f.clock = f.clock.Add(time.Microsecond)
			some[i] = journal.Record{
				Hub: id, Seq: records[id], Time: f.clock, Kind: journal.KindCommand,
				Payload: make([]byte, 300),
			}
		}
		c, err := journal.NewCommit(seq, 1, some, f.index.Tip)
		if err != nil {
			t.Fatal(err)
		}
		return c
	})
	if grown := heapBytes() - before; len(records) < len(all) || grown > 4*limit {
		t.Errorf("records of %d hubs in a backlog of %d bytes: the heap has grown by %d",
			len(records), limit, grown)
	}
	f.stop()
	if err := <-waiting; !errors.Is(err, ErrStopped) {
		t.Errorf("Add after the stop: got %v, want ErrStopped", err)
	}
}

func heapBytes() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
