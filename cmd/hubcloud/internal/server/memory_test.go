package server

import (
	"context"
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"
)

// A fixed limit below what is in use would leave the processors to the garbage collector.
func TestMemoryLimitFollowsWhatIsInUse(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	t.Setenv("GOMEMLIMIT", "")
	limit := func() int64 {
		runtime.GC()
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
			defer cancel()
			if err := new(process).limitMemory(ctx); err != nil {
				t.Error(err)
			}
		})
		return debug.SetMemoryLimit(-1)
	}
	if got := limit(); got != 768<<20 {
		t.Errorf("little in use: got %d bytes, want 768 MiB", got)
	}
	used := make([]byte, 600<<20)
	if got := limit(); got < 900<<20 || got > 1100<<20 {
		t.Errorf("600 MiB in use: got %d bytes, want half as much again", got)
	}
	runtime.KeepAlive(used)
}

func TestMemoryLimitOfTheOperator(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(2 << 30))
	t.Setenv("GOMEMLIMIT", "2GiB")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := new(process).limitMemory(ctx); err != nil || debug.SetMemoryLimit(-1) != 2<<30 {
		t.Errorf("got %v, and a limit of %d bytes, want the operator's", err, debug.SetMemoryLimit(-1))
	}
}
