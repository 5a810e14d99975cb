package main

import (
	"fmt"
	"math"
	"syscall"
)

// fileShares is how the files that the process may have open are shared out. What is left, three
// eighths by default, is for hubs' logs and for what the process needs itself: connections to it
// never take those.
type fileShares struct {
	limit uint64
	// api is how many connections API clients may have, broker how many the embedded broker takes.
	api, broker int
}

// shareFiles shares out what the limit of open files allows, as far as the flags leave it open.
func (f *serviceFlags) shareFiles() (fileShares, error) {
	var limit syscall.Rlimit
	// Go's runtime has raised the soft limit to the hard one before main began.
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fileShares{}, fmt.Errorf("limit of open files: %w", err)
	}
	files := int(min(limit.Cur, math.MaxInt32))
	shares := fileShares{limit: limit.Cur, api: f.Connections, broker: f.BrokerConnections}
	if shares.api == 0 {
		shares.api = max(16, files/4)
	}
	if shares.broker == 0 {
		shares.broker = max(16, files/8*3)
	}
	return shares, nil
}
