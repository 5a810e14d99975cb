package sim

import (
	"context"
	"flag"
	"fmt"
	"math/rand"
	"testing"
	"time"
)

var (
	seeds     = flag.Int("seeds", 10, "how many seeds are run")
	firstSeed = flag.Int64("seed", 1, "the first seed")
	status    = flag.Duration("status", 30*time.Second, "how long after a heal a status may be wrong")
	meta      = flag.Bool("meta", false, "run each seed twice, and say how far the logs are the same")
	acks      = flag.Duration("acks", 30*time.Second, "how long after a heal acks may be missing")
)

const (
	hubs     = 6
	episodes = 3
	// settle is the time without faults before the last check.
	settle = 30 * time.Second
)

// Each seed runs a cluster with its hubs and clients through some faults.
func TestSim(t *testing.T) {
	if *meta {
		t.Skip("-meta: see TestMeta")
	}
	for seed := *firstSeed; seed < *firstSeed+int64(*seeds); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			defer func() { // a failure in the bubble ends this function
				if t.Failed() {
					t.Logf("repeat it with: make sim SEED=%d SEEDS=1", seed)
				}
			}()
			bubble(t, seed, func(t *testing.T, trace *Trace) { run(t, seed, trace) })
		})
	}
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
	t.Logf("slowest ack after a heal: %v", w.SlowestAck)
	for _, failure := range w.Failures() {
		t.Error(failure)
	}
}

// With -meta, each seed runs twice. The test fails for none: it prints how far the logs are the same.
func TestMeta(t *testing.T) {
	if !*meta {
		t.Skip("needs -meta")
	}
	same := 0
	for seed := *firstSeed; seed < *firstSeed+int64(*seeds); seed++ {
		var traces [2]*Trace
		for i := range traces {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				bubble(t, seed, func(t *testing.T, trace *Trace) {
					traces[i] = trace
					run(t, seed, trace)
				})
			})
		}
		prefix, lines, until := traces[0].Compare(traces[1])
		t.Logf("seed %d: %d of %d lines are the same, until %v", seed, prefix, lines, until)
		if prefix == lines {
			same++
		}
	}
	t.Logf("%d of %d seeds repeat to the end", same, *seeds)
}
