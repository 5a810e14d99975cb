package broker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// recoverPoll is how often a server whose store has failed looks for room.
	recoverPoll = 200 * time.Millisecond
	// recoverPause is the pause after a restart that failed, or that was followed by another fault
	// at once; it doubles up to recoverMaxPause.
	recoverPause    = time.Second
	recoverMaxPause = 10 * time.Second
	// recoverSettled is how long after a restart a fault counts as a new one.
	recoverSettled = time.Minute
	// recoverRoom is what must be free for a restart, when the reserve does not ask for less.
	recoverRoom = 16 << 20
	// recoverFiles is how many files it must be possible to make for one.
	recoverFiles = 64
	// probeSize is how much the probe of a disk writes.
	probeSize = 256 << 10
	probeName = ".hubcloud-probe-*.tmp"
)

// faults is what is known of failed writes of the server. A stream that failed to write once
// rejects everything until the server has recovered it from disk, although there is room again.
type faults struct {
	happened chan struct{} // has room for one
	restarts atomic.Int64

	mu    sync.Mutex
	first string
	since time.Time
}

func newFaults() *faults { return &faults{happened: make(chan struct{}, 1)} }

// line looks at a line of the server's log before it is formatted.
func (f *faults) line(format string, v []any) {
	failed := strings.Contains(format, writeErrorFormat)
	cause := ""
	for _, value := range v {
		err, ok := value.(error)
		if !ok {
			continue
		}
		if diskError(err) {
			failed = true
		}
		cause = err.Error()
	}
	if !failed {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.since.IsZero() {
		f.first, f.since = cause, time.Now()
	}
	select {
	case f.happened <- struct{}{}:
	default: // the recovery loop has not seen the last one yet
	}
}

// writeErrorFormat is in the format of the lines with which nats-server 2.15 says that a stream
// stores nothing any more. Some of the errors in these lines have lost their type. A test with a
// full disk holds this to the server.
const writeErrorFormat = "ritical write error"

// diskError reports whether an error is a disk's: full, over its quota, read-only, or broken.
func diskError(err error) bool {
	for _, number := range []syscall.Errno{
		syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO,
	} {
		if errors.Is(err, number) {
			return true
		}
	}
	return false
}

func (f *faults) failed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.since.IsZero()
}

func (f *faults) state() (cause string, since time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.first, f.since
}

// forget is called between two runs of the server: what failed in the former one says nothing of
// the next.
func (f *faults) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.first, f.since = "", time.Time{}
	select {
	case <-f.happened:
	default:
	}
}

// StoreFailed returns why the server's store cannot be written to and since when, or a zero time
// when it can. The server is restarted by itself once there is room on the disk.
func (s *Server) StoreFailed() (cause string, since time.Time) { return s.faults.state() }

// recover restarts the server after its store has failed, each time once there is room. It returns
// when ctx ends.
func (s *Server) recover(ctx context.Context) {
	pause, restarted := time.Duration(0), time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.faults.happened:
		}
		s.cfg.Space.SetFailed(true)
		cause, _ := s.faults.state()
		s.log.Error(
			"broker cannot write to its disk; it is restarted once there is room", "error", cause,
		)
		if time.Since(restarted) > recoverSettled {
			pause = 0
		}
		for done := false; !done; {
			if !sleep(ctx, pause) || !s.awaitRoom(ctx) {
				return
			}
			pause = min(max(2*pause, recoverPause), recoverMaxPause)
			began := time.Now()
			if err := s.restart(ctx); err != nil {
				s.log.Error(
					"broker not restarted; trying again", "error", err,
					"wait_ms", pause.Milliseconds(),
				)
				continue
			}
			done, restarted = true, time.Now()
			s.faults.restarts.Add(1)
			s.cfg.Space.SetFailed(false)
			s.log.Info("broker restarted", "duration_ms", time.Since(began).Milliseconds())
		}
	}
}

// awaitRoom returns true when there is room on the disk and it takes writes, and false when ctx
// ends before.
func (s *Server) awaitRoom(ctx context.Context) bool {
	for {
		if s.hasRoom() && probe(s.store) == nil {
			return true
		}
		if !sleep(ctx, recoverPoll) {
			return false
		}
	}
}

// hasRoom reports whether a restart is worth while. The reserve need not be free: leases and
// presence write below it, too.
func (s *Server) hasRoom() bool {
	space := s.cfg.Space.State()
	if space.Files > 0 && space.FreeFiles < min(recoverFiles, max(space.FilesReserve/2, 1)) {
		return false
	}
	return space.Size == 0 || space.Free >= min(recoverRoom, max(space.Reserve/2, probeSize))
}

// probe writes a small file, syncs it, and removes it.
func probe(dir string) error {
	file, err := os.CreateTemp(dir, probeName)
	if err != nil {
		return err
	}
	_, err = file.Write(make([]byte, probeSize))
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close(), os.Remove(file.Name()))
}

// removeProbes removes what a crash has left of probes.
func removeProbes(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, probeName))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// restart ends the run and begins another one, on the same addresses. Connections find it by
// themselves.
func (s *Server) restart(ctx context.Context) error {
	s.current.Store(nil)
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		last.end(context.WithoutCancel(ctx))
	}()
	select {
	case <-ended:
	case <-time.After(closeWait):
		return errors.New("the server that failed does not end")
	}
	s.faults.forget()
	opts, err := s.options()
	if err != nil {
		return err
	}
	return s.begin(ctx, opts)
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
