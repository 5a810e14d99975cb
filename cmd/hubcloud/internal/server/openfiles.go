package server

import (
	"fmt"
	"math"
	"syscall"
)

// fileShares divides the files that the process may open between API clients and broker
// connections. The rest, three eighths by default, is reserved for hub logs and the process itself.
type fileShares struct {
	// limit is the process's limit of open files.
	limit uint64
	// api and broker are the most connections of API clients and to the embedded broker.
	api, broker int
}

// shareFiles returns the shares. They follow from the limit of open files, unless --connections
// sets that of API clients.
func (c Config) shareFiles() (fileShares, error) {
	var limit syscall.Rlimit
	// Go's runtime raised the soft limit to the hard one before main began.
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fileShares{}, fmt.Errorf("limit of open files: %w", err)
	}
	files := int(min(limit.Cur, math.MaxInt32))
	shares := fileShares{limit: limit.Cur, api: c.Connections, broker: max(16, files/8*3)}
	if shares.api == 0 {
		shares.api = max(16, files/4)
	}
	return shares, nil
}
