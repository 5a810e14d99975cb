package server

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// leastMemoryLimit is the lowest soft limit of the process's memory in bytes. Below it there is no
	// need to collect garbage more often, which takes the processors from requests.
	leastMemoryLimit = 768 << 20
	// memoryStep keeps the limit from changing all the time: each change stops the process briefly.
	memoryStep = 64 << 20
)

// memoryLimit returns the soft limit, in bytes, for so many bytes that were in use at the last
// garbage collection: half as much again. With Go's default, twice as much, a tenant who makes
// garbage in large caches makes the process as large.
func memoryLimit(live uint64) int64 {
	return max(leastMemoryLimit, (int64(live)*3/2+memoryStep-1)/memoryStep*memoryStep)
}

// limitMemory has the soft limit follow what is in use, unless GOMEMLIMIT sets one.
func (p *process) limitMemory(ctx context.Context) error {
	if os.Getenv("GOMEMLIMIT") != "" {
		<-ctx.Done()
		return nil
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		metrics.Read(live)
		if limit := memoryLimit(live[0].Value.Uint64()); limit != debug.SetMemoryLimit(-1) {
			debug.SetMemoryLimit(limit)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
