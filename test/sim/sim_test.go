package sim

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"

	"github.com/nats-io/nats-server/v2/server/ats"
)

func TestMain(m *testing.M) {
	flag.Parse()
	PowerCuts = *power
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(400) // saves an eighth of the time
	ats.Register()          // the clock of nats-server's stores, which a bubble cannot start and stop
	os.Exit(m.Run())
}

// bubble runs a test in virtual time, with random numbers from a seed.
func bubble(t *testing.T, seed int64, test func(*testing.T, *Trace)) {
	t.Helper()
	cryptotest.SetGlobalRandom(t, uint64(seed))
	runtime.GC() // two collections empty the pools of timers that packages keep: a timer of a bubble
	runtime.GC() // that has ended ends the process in the next one
	synctest.Test(t, func(t *testing.T) {
		trace := NewTrace()
		defer func() {
			if t.Failed() {
				t.Logf("faults and broken promises:\n%s", trace.Extract("FAULT", "CHECK"))
			}
			if t.Failed() || *logs {
				trace.save(t)
			}
		}()
		test(t, trace)
	})
}

// save writes the log of a failed run to bin/sim.
func (t *Trace) save(test *testing.T) {
	name := fmt.Sprint(strings.ReplaceAll(test.Name(), "/", "-"), "-", *seed, ".log")
	path := filepath.Join("..", "..", "bin", "sim", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		test.Log(err)
	}
	if err := os.WriteFile(path, []byte(t.Extract()), 0o644); err != nil {
		test.Log(err)
	}
	test.Logf("the log, in virtual time, is in bin/sim/%s", name)
}
