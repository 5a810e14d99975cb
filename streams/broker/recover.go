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

	"hubcloud/streams"
)

const (
	// recoverPoll is the pause between two checks for free space after a failed write.
	recoverPoll = 200 * time.Millisecond
	// recoverPause is the pause after a restart that failed or was soon followed by another failed
	// write. It doubles up to recoverMaxPause.
	recoverPause    = time.Second
	recoverMaxPause = 10 * time.Second
	// recoverReset is the time after a restart at which the pause starts from the beginning.
	recoverReset = time.Minute
	// recoverSpace is the free space, in bytes, that a restart needs, unless the reserve is
	// smaller.
	recoverSpace = 16 << 20
	// recoverFiles is the number of files that a restart must be able to create.
	recoverFiles = 64
	// probeSize is the size of the file that tests the disk, in bytes.
	probeSize = 256 << 10
	probeName = ".hubcloud-probe-*.tmp"
)

// faults records failed writes of the servers. After one, a stream rejects every write until the
// server has recovered it from disk, even if the disk has space again.
type faults struct {
	// happened has a value after a failed write.
	happened chan struct{}
	restarts atomic.Int64

	mu    sync.Mutex
	first string
	since time.Time
}

func newFaults() *faults { return &faults{happened: make(chan struct{}, 1)} }

// inspect looks for an error of the disk in a log line of the server, before it is formatted.
func (f *faults) inspect(format string, v []any) {
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
	default: // the recovery loop has not handled the last one yet
	}
}

// writeErrorFormat is part of the format strings with which nats-server 2.15 logs that a stream
// rejects writes. Some errors in these lines have lost their type. A test with a full disk checks
// that the server still uses it.
const writeErrorFormat = "ritical write error"

// diskError reports whether err is an error of the disk: full, over quota, read-only or broken.
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

// reset clears the faults, between two runs of the server.
func (f *faults) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.first, f.since = "", time.Time{}
	select {
	case <-f.happened:
	default:
	}
}

// StoreFailed returns the cause and time of the first failed write since the last restart, or a
// zero time if there was none. The server restarts by itself once the disk has space.
func (s *Server) StoreFailed() (cause string, since time.Time) { return s.faults.state() }

// recover restarts the server after failed writes, once the disk has space. It returns when ctx
// ends.
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
		s.logger.Error(
			"broker cannot write to its disk; restarting it once there is space", "error", cause,
		)
		if time.Since(restarted) > recoverReset {
			pause = 0
		}
		for done := false; !done; {
			if !streams.Sleep(ctx, pause) || !s.awaitSpace(ctx) {
				return
			}
			pause = min(max(2*pause, recoverPause), recoverMaxPause)
			began := time.Now()
			if err := s.restart(ctx); err != nil {
				s.logger.Error(
					"broker restart failed; retrying", "error", err,
					"wait_ms", pause.Milliseconds(),
				)
				continue
			}
			done, restarted = true, time.Now()
			s.faults.restarts.Add(1)
			s.cfg.Space.SetFailed(false)
			s.logger.Info("broker restarted", "duration_ms", time.Since(began).Milliseconds())
		}
	}
}

// awaitSpace waits until the disk has space and accepts writes. It returns false if ctx ends first.
func (s *Server) awaitSpace(ctx context.Context) bool {
	for {
		if s.hasSpace() && probe(s.store) == nil {
			return true
		}
		if !streams.Sleep(ctx, recoverPoll) {
			return false
		}
	}
}

// hasSpace reports whether there is enough space for a restart. That is less than the reserve, into
// which leases and presence may write.
func (s *Server) hasSpace() bool {
	space := s.cfg.Space.State()
	if space.Files > 0 && space.FreeFiles < min(recoverFiles, max(space.FilesReserve/2, 1)) {
		return false
	}
	return space.Size == 0 || space.Free >= min(recoverSpace, max(space.Reserve/2, probeSize))
}

// probe writes, syncs and removes a small file.
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

// removeProbes removes the files of probes that were interrupted by a crash.
func removeProbes(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, probeName))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// restart stops both servers and starts others on the same addresses. Connections reconnect by
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
	case <-time.After(closeTimeout):
		return errors.New("the failed servers do not stop")
	}
	s.faults.reset()
	opts, err := s.options()
	if err != nil {
		return err
	}
	return s.begin(ctx, opts)
}
