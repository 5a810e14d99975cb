package disk

import (
	"cmp"
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
	// retryAfter is the Retry-After of the errors of Admit.
	retryAfter = 10 * time.Second
	// overhead is what each admitted write takes on disk beyond its size: subjects, headers and
	// index entries.
	overhead = 512
	// margin is the fraction 1/margin of the reserve that must be free beyond it before writes are
	// admitted again. Without it the state of a disk right at its reserve would change all the
	// time.
	margin = 20
)

// ErrLow is returned by Admit while less than the reserve is free. The error is also a
// domain.Error, service_unavailable.
var ErrLow = errors.New(
	"the disk has less free space, or fewer free files, than the reserve, or cannot be written to",
)

// State is a measurement of the file system.
type State struct {
	// Free, Size and Reserve are in bytes. Free is what this process may use.
	Free, Size, Reserve int64
	// FreeFiles, Files and FilesReserve are numbers of files (inodes). Files is 0 for a file system
	// without such a limit.
	FreeFiles, Files, FilesReserve int64
	// Low reports whether less than the reserve is free, so that Admit returns errors. Since is
	// when that began.
	Low   bool
	Since time.Time
	// NoFiles reports whether Low is due to files only, and not to bytes.
	NoFiles bool
	// Failed is the last argument of SetFailed.
	Failed bool
}

// Guard watches one file system. It is safe for concurrent use. A nil Guard admits everything.
type Guard struct {
	dir     string
	reserve Reserve
	logger  *slog.Logger

	// admissible is how many bytes may be admitted until the next measurement.
	admissible atomic.Int64
	low        atomic.Bool
	noFiles    atomic.Bool
	failed     atomic.Bool

	mu    sync.Mutex
	state State
}

// OpenGuard returns a Guard of the file system that dir is on, after a first measurement. The caller
// must call Run. A nil logger means slog.Default().
func OpenGuard(dir string, reserve Reserve, logger *slog.Logger) (*Guard, error) {
	g := &Guard{dir: dir, reserve: reserve, logger: cmp.Or(logger, slog.Default())}
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

// Measure measures the file system now.
func (g *Guard) Measure() error {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(g.dir, &disk); err != nil {
		return fmt.Errorf("free space of %s: %w", g.dir, err)
	}
	block := int64(disk.Bsize) //nolint:unconvert // the types differ between systems
	g.update(State{
		Free: int64(disk.Bavail) * block, Size: int64(disk.Blocks) * block,
		FreeFiles: int64(disk.Ffree), Files: int64(disk.Files),
	}, time.Now())
	return nil
}

// update sets the state to a measurement and logs when Low changes.
func (g *Guard) update(found State, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.state
	found.Reserve, found.FilesReserve = g.reserve.bytes(found.Size), g.reserve.files(found.Files)
	bytes, files := found.Reserve, found.FilesReserve
	if before.Low {
		bytes, files = bytes+bytes/margin, files+files/margin
	}
	noBytes, noFiles := found.Free < bytes, found.FreeFiles < files
	found.Low, found.NoFiles = noBytes || noFiles, noFiles && !noBytes
	if found.Low {
		if found.Since = before.Since; !before.Low {
			found.Since = now
		}
	}
	g.state = found
	attrs := []any{"dir", g.dir, "free_bytes", found.Free, "reserve_bytes", found.Reserve}
	if found.Files > 0 {
		attrs = append(attrs, "free_files", found.FreeFiles, "reserve_files", found.FilesReserve)
	}
	switch {
	case found.Low && found.NoFiles && (!before.Low || !before.NoFiles):
		g.logger.Error(
			"disk almost out of files (inodes): hub events, changes and commands rejected "+
				"until some are removed",
			attrs...)
	case found.Low && !found.NoFiles && (!before.Low || before.NoFiles):
		g.logger.Error(
			"disk almost full: hub events, changes and commands rejected until there is space",
			attrs...)
	case before.Low && !found.Low:
		g.logger.Info(
			"disk has space again",
			append(attrs, "low_ms", now.Sub(before.Since).Milliseconds())...)
	}
	g.noFiles.Store(found.NoFiles)
	g.low.Store(found.Low)
	g.admissible.Store(found.Free - found.Reserve)
}

// SetFailed records whether writing to the disk fails. While it does, Admit returns errors.
func (g *Guard) SetFailed(failed bool) {
	if g != nil {
		g.failed.Store(failed)
	}
}

// Admit returns nil when that many bytes may be stored, and otherwise an ErrLow.
func (g *Guard) Admit(bytes int) error {
	switch {
	case g == nil:
		return nil
	case g.failed.Load():
		return errLow(
			"the service cannot write to its disk at the moment: nothing was stored; reading " +
				"still works. The service recovers once the disk accepts writes",
		)
	case g.low.Load() && g.noFiles.Load():
		return errLow(
			"the service's disk has almost no files (inodes) left: nothing was stored; reading " +
				"still works. The operator has to remove files",
		)
	case g.low.Load() || g.admissible.Add(-int64(bytes)-overhead) < 0:
		return errLow(
			"the service's disk is almost full: nothing was stored; reading still works. The " +
				"operator has to free space",
		)
	}
	return nil
}

func errLow(message string) error {
	err := domain.Unavailable("%s", message)
	err.RetryAfter = retryAfter
	return fmt.Errorf("%w: %w", ErrLow, err)
}

// State returns the last measurement. The State of a nil Guard is the zero value.
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
