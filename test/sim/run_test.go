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
	status = flag.Duration("status", 10*time.Second, "how long after the elections a status may be wrong")
	logs   = flag.Bool("log", false, "save the log also of a seed that finds nothing")
	power  = flag.Bool("power", false, "let half of the crashes of servers be power cuts")
	meta   = flag.Bool("meta", false, "run the seed twice, and say how far the logs are the same")
	acks   = flag.Duration("acks", 15*time.Second, "how long after the elections acks may be missing")
)

const (
	// leastHubs and mostHubs bound the number of hubs, of which most seeds have few.
	leastHubs, mostHubs = 4, 30
	episodes            = 3
	// settle is the time without faults before the last check.
	settle = 30 * time.Second
)

// A seed runs a cluster with its hubs and clients through some faults; with -meta twice, and the test
// prints how far the two logs are the same.
func TestSim(t *testing.T) {
	defer func() { // a failure in the bubble ends this function
		if t.Failed() {
			t.Logf("repeat it with: make sim SEED=%d SEEDS=1", *seed)
		}
	}()
	var former *Trace
	bubble(t, *seed, func(t *testing.T, trace *Trace) {
		former = trace
		run(t, *seed, trace)
	})
	if !*meta {
		return
	}
	bubble(t, *seed, func(t *testing.T, trace *Trace) {
		run(t, *seed, trace)
		prefix, lines, until := former.Compare(trace)
		t.Logf("seed %d: %d of %d lines are the same, until %v", *seed, prefix, lines, until)
	})
}

func run(t *testing.T, seed int64, trace *Trace) {
	random := rand.New(rand.NewSource(seed))
	hubs := leastHubs + int(random.ExpFloat64()*4)
	w, err := NewWorld(t, seed, trace, min(hubs, mostHubs))
	defer w.Stop()
	if err != nil {
		t.Errorf("start: %v", err)
		return
	}
	w.Limits = Limits{Status: *status, Acks: *acks}
	ctx := context.Background()
	load := StartLoad(w)
	for range episodes {
		_ = sleep(ctx, time.Duration(random.Int63n(int64(10*time.Second))))
		Episode(ctx, w, random)
	}
	load.Stop()
	_ = sleep(ctx, settle)
	load.Check(ctx)
	t.Logf(
		"seed %d: elections took up to %.1f s after a heal, and acks up to %.1f s after those", seed,
		w.SlowestElection.Seconds(), w.SlowestAck.Seconds(),
	)
	for _, failure := range w.Failures() {
		t.Error(failure)
	}
}
