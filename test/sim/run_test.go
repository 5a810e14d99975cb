package sim

import (
	"context"
	"flag"
	"math/rand"
	"testing"
	"time"
)

var (
	seed   = flag.Int64("seed", 1, "the seed")
	status = flag.Duration("status", 30*time.Second, "how long after a heal a status may be wrong")
	meta   = flag.Bool("meta", false, "run the seed twice, and say how far the logs are the same")
	acks   = flag.Duration("acks", 30*time.Second, "how long after a heal acks may be missing")
)

const (
	hubs     = 6
	episodes = 3
	// settle is the time without faults before the last check.
	settle = 30 * time.Second
)

// A seed runs a cluster with its hubs and clients through some faults.
func TestSim(t *testing.T) {
	if *meta {
		t.Skip("-meta: see TestMeta")
	}
	defer func() { // a failure in the bubble ends this function
		if t.Failed() {
			t.Logf("repeat it with: make sim SEED=%d SEEDS=1", *seed)
		}
	}()
	bubble(t, *seed, func(t *testing.T, trace *Trace) { run(t, *seed, trace) })
}

func run(t *testing.T, seed int64, trace *Trace) {
	w, err := NewWorld(t, seed, trace, hubs)
	defer w.Stop()
	if err != nil {
		t.Errorf("start: %v", err)
		return
	}
	w.Limits = Limits{Status: *status, Acks: *acks}
	ctx := context.Background()
	load := StartLoad(w)
	random := rand.New(rand.NewSource(seed))
	for range episodes {
		_ = sleep(ctx, time.Duration(random.Int63n(int64(10*time.Second))))
		Episode(ctx, w, random)
	}
	load.Stop()
	_ = sleep(ctx, settle)
	load.Check(ctx)
	t.Logf("seed %d: the slowest ack took %v after a heal", seed, w.SlowestAck)
	for _, failure := range w.Failures() {
		t.Error(failure)
	}
}

// With -meta, the seed runs twice. The test prints how far the two logs are the same.
func TestMeta(t *testing.T) {
	if !*meta {
		t.Skip("needs -meta")
	}
	var traces [2]*Trace
	for i := range traces {
		t.Run("", func(t *testing.T) {
			bubble(t, *seed, func(t *testing.T, trace *Trace) {
				traces[i] = trace
				run(t, *seed, trace)
			})
		})
	}
	prefix, lines, until := traces[0].Compare(traces[1])
	t.Logf("seed %d: %d of %d lines are the same, until %v", *seed, prefix, lines, until)
}
