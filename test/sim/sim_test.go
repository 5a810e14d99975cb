package sim

import (
	"os"
	"runtime"
	"testing"
	"testing/cryptotest"
	"testing/synctest"

	"github.com/nats-io/nats-server/v2/server/ats"
)

func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	ats.Register() // the clock of nats-server's stores, which a bubble cannot start and stop
	os.Exit(m.Run())
}

// bubble runs a test in virtual time, with random numbers from a seed.
func bubble(t *testing.T, seed int64, test func(*testing.T, *Trace)) {
	t.Helper()
	cryptotest.SetGlobalRandom(t, uint64(seed))
	synctest.Test(t, func(t *testing.T) {
		trace := NewTrace()
		defer func() {
			if t.Failed() {
				t.Logf("in virtual time:\n%s", trace)
			}
		}()
		test(t, trace)
	})
}
