package bench

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"hubcloud/test/harness"
)

const (
	// roleAttack is the process of an attack: what it does itself must not hold up who measures.
	roleAttack = "attack"
	// roleBurner is a process that uses the processors and asks the service for nothing.
	roleBurner = "burner"
)

// attackConfig is what a process of an attack does: to which service, which runs a program.
type attackConfig struct {
	Program string
	Service *harness.Service
	Attack  string
	Full    bool
}

// attackReady is where the process of an attack prints that it is ready.
var attackReady = os.Stdout

// attackArgs makes a process of this test binary run TestAttack, whose output goes to the standard error.
func attackArgs() {
	os.Args = []string{os.Args[0], "-test.run=^TestAttack$", "-test.timeout=0"}
	os.Stdout = os.Stderr
}

// TestAttack attacks a service until the end of its standard input, in a process of the measurement
// fairness.
func TestAttack(t *testing.T) {
	if os.Getenv(roleVariable) != roleAttack {
		t.Skip("only in a process of the measurement fairness")
	}
	var cfg attackConfig
	harness.Must(t, json.Unmarshal([]byte(os.Getenv(configVariable)), &cfg))
	cfg.Service.Program = cfg.Program
	s := &service{t: t, Service: cfg.Service.For(t)}
	b := &bench{TB: t, full: cfg.Full}
	tenant := harness.NewTenant(t, s.Service, "Attacker")
	a := attacker{b, s, tenant, s.target(b).Online(tenant)}
	ctx, end := context.WithCancel(t.Context())
	go func() {
		defer end()
		_, _ = io.Copy(io.Discard, os.Stdin) // closed or failed, the measurement has ended
	}()
	harness.Must(t, json.NewEncoder(attackReady).Encode(bareReady{}))
	for _, attack := range attacks {
		if attack.name == cfg.Attack {
			attack.run(ctx, a)
		}
	}
}

// burn starts as many threads as it takes to use a number of processors, as far as they get them. They
// end with the process.
func burn(config []byte) error {
	var processors float64
	if err := json.Unmarshal(config, &processors); err != nil {
		return err
	}
	threads := math.Ceil(processors)
	for range int(threads) {
		go func() {
			runtime.LockOSThread()
			for begun := time.Now(); ; {
				var used syscall.Rusage
				if syscall.Getrusage(1, &used) != nil { // RUSAGE_THREAD
					return
				}
				ran := time.Duration(used.Utime.Nano() + used.Stime.Nano())
				if ran.Seconds() > time.Since(begun).Seconds()*processors/threads {
					harness.Elapse(time.Millisecond)
				}
			}
		}()
	}
	return nil
}
