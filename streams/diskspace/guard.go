// Package diskspace keeps a reserve of a file system free. Whoever is about to store something that
// can wait asks Admit first; below the reserve the answer is an error. There is a reserve of bytes
// and one of files (inodes). The reserve is for what must go on: leases, presence, the database's
// log and checkpoints, sign-in, outcomes of commands, and expiry, which writes before it frees.
//
// A Guard measures the file system ten times a second. In between it counts what it admitted as
// written, so that a fast writer cannot use up the reserve between two measurements.
package diskspace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"hubcloud/domain"
)

const (
	// measureEvery is how often the file system is measured.
	measureEvery = 100 * time.Millisecond
	// retryAfter is how long clients wait that were told that the disk is almost full.
	retryAfter = 10 * time.Second
	// overhead is what each admitted thing takes on disk beyond its own size: subjects, headers,
	// and the copy in an index.
	overhead = 512
	// marginPart is the part of the reserve that must be free beyond it before things are admitted
	// again, so that a disk right at its reserve does not change its state ten times a second.
	marginPart = 20
)

// ErrLow is returned by Admit while less than the reserve is free. The error is also a
// domain.Error, service_unavailable.
var ErrLow = errors.New(
	"the disk has less free space, or fewer free files, than the reserve, or cannot be written to",
)

// State is what is known of the file system.
type State struct {
	// Free, Size and Reserve are in bytes. Free is what this process may use.
	Free, Size, Reserve int64
	// FreeFiles, Files and FilesReserve are numbers of files (inodes). Files is 0 for a file system
	// without such a limit.
	FreeFiles, Files, FilesReserve int64
	// Low is whether Admit returns errors, and Since when that began.
	Low   bool
	Since time.Time
	// NoFiles is whether that is for want of files, and not of bytes.
	NoFiles bool
	// Failed is whether SetFailed says that the disk cannot be written to.
	Failed bool
}

// Guard watches one file system. Its methods may be called by several goroutines at once. A nil
// Guard admits everything.
type Guard struct {
	dir     string
	reserve Reserve
	logger  *slog.Logger

	// room is what may be admitted until the next measurement; below zero nothing is.
	room   atomic.Int64
	low    atomic.Bool
	files  atomic.Bool // why it is low
	failed atomic.Bool

	mu    sync.Mutex
	state State
}

// Open measures the file system that dir is on. The caller runs Run beside it.
func Open(dir string, reserve Reserve, logger *slog.Logger) (*Guard, error) {
	g := &Guard{dir: dir, reserve: reserve, logger: logger}
	return g, g.Measure()
}

// Run measures until ctx ends, and returns ctx's error.
func (g *Guard) Run(ctx context.Context) error {
	ticker := time.NewTicker(measureEvery)
	defer ticker.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		err := g.Measure()
		if err != nil && !failing {
			g.logger.Warn("disk not measured", "error", err)
		}
		failing = err != nil
	}
}

// Measure asks the file system now.
func (g *Guard) Measure() error {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(g.dir, &disk); err != nil {
		return fmt.Errorf("free space of %s: %w", g.dir, err)
	}
	block := int64(disk.Bsize) //nolint:unconvert // the types differ between systems
	g.take(State{
		Free: int64(
			disk.Bavail,
		) * block, Size: int64(disk.Blocks) * block, FreeFiles: int64(disk.Ffree), Files: int64(disk.Files),
	}, time.Now())
	return nil
}

// take takes in a measurement.
func (g *Guard) take(found State, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.state
	found.Reserve, found.FilesReserve = g.reserve.of(found.Size), g.reserve.files(found.Files)
	bytes, files := found.Reserve, found.FilesReserve
	if was.Low {
		bytes, files = bytes+bytes/marginPart, files+files/marginPart
	}
	noBytes, noFiles := found.Free < bytes, found.FreeFiles < files
	found.Low, found.NoFiles = noBytes || noFiles, noFiles && !noBytes
	if found.Low {
		if found.Since = was.Since; !was.Low {
			found.Since = now
		}
	}
	g.state = found
	about := []any{"dir", g.dir, "free_bytes", found.Free, "reserve_bytes", found.Reserve}
	if found.Files > 0 {
		about = append(about, "free_files", found.FreeFiles, "reserve_files", found.FilesReserve)
	}
	switch {
	case found.Low && found.NoFiles && (!was.Low || !was.NoFiles):
		g.logger.Error(
			"disk almost out of files (inodes): hub events, changes and commands rejected until some are removed",
			about...)
	case found.Low && !found.NoFiles && (!was.Low || was.NoFiles):
		g.logger.Error(
			"disk almost full: hub events, changes and commands rejected until there is room",
			about...)
	case was.Low && !found.Low:
		g.logger.Info(
			"disk has room again",
			append(about, "low_ms", now.Sub(was.Since).Milliseconds())...)
	}
	g.files.Store(found.NoFiles)
	g.low.Store(found.Low)
	g.room.Store(found.Free - found.Reserve)
}

// SetFailed says that writing to the disk has failed, or that it works again. Admit returns errors
// in between.
func (g *Guard) SetFailed(failed bool) {
	if g != nil {
		g.failed.Store(failed)
	}
}

// Admit returns nil when something of that many bytes may be stored, and otherwise an ErrLow.
func (g *Guard) Admit(bytes int) error {
	switch {
	case g == nil:
		return nil
	case g.failed.Load():
		err := domain.Unavailable(
			"the service cannot write to its disk at the moment: nothing was stored, and reading " +
				"goes on; it recovers by itself once the disk takes writes",
		)
		err.RetryAfter = retryAfter
		return fmt.Errorf("%w: %w", ErrLow, err)
	}
	if g.low.Load() && g.files.Load() {
		err := domain.Unavailable(
			"the service's disk has almost no files (inodes) left: nothing was stored, and " +
				"reading goes on; the operator has to remove files",
		)
		err.RetryAfter = retryAfter
		return fmt.Errorf("%w: %w", ErrLow, err)
	}
	if g.low.Load() || g.room.Add(-int64(bytes)-overhead) < 0 {
		err := domain.Unavailable(
			"the service's disk is almost full: nothing was stored, and reading goes on; the operator has to make room",
		)
		err.RetryAfter = retryAfter
		return fmt.Errorf("%w: %w", ErrLow, err)
	}
	return nil
}

// State returns what was measured last. The State of a nil Guard is the zero value.
func (g *Guard) State() State {
	if g == nil {
		return State{}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	state := g.state
	state.Failed = g.failed.Load()
	return state
}
