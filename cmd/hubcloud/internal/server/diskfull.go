package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// spacePoll is the pause between two probes of a full disk.
	spacePoll = 500 * time.Millisecond
	// restartPause is the pause between a start that failed on a full disk and the next probe.
	restartPause = 3 * time.Second
	// probeBytes is how much must be writable before the start is tried again.
	probeBytes = 4 << 20
	// extendBy is how much more time a waiting start asks the service manager for, repeatedly.
	extendBy = time.Minute
)

// diskFullState is PostgreSQL's SQLSTATE for a full disk.
const diskFullState = "53100"

// isDiskFull reports whether an error means that the disk has no space for bytes or files, or that
// a quota is used up. It also matches texts: PostgreSQL's programs report errors only as text.
func isDiskFull(err error) bool {
	if err == nil {
		return false
	}
	var database *pgconn.PgError
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) ||
		errors.As(err, &database) && database.Code == diskFullState {
		return true
	}
	text := strings.ToLower(err.Error())
	for _, number := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		if strings.Contains(text, number.Error()) {
			return true
		}
	}
	return false
}

// startWhenSpace calls Start. When the start fails because the disk is full, startWhenSpace waits
// for space and starts again; nothing of the server runs meanwhile. The wait has no limit:
// --start-timeout bounds each start, not the wait between two. startWhenSpace returns when the
// server is ready, when a start fails for another reason, or when ctx ends.
func startWhenSpace(ctx context.Context, cfg Config, logger *slog.Logger) (*Server, error) {
	for {
		fullBefore := hasNoSpace(cfg.DataDir)
		s, err := Start(ctx, cfg, logger)
		if err == nil || ctx.Err() != nil {
			return s, err
		}
		// A part that fails on a full disk may report another error, so look at the disk too.
		if !isDiskFull(err) &&
			(lasting(err) || !fullBefore && !isDiskFull(probeSpace(cfg.DataDir))) {
			return nil, err
		}
		if err := waitForSpace(ctx, cfg, err, logger); err != nil {
			return nil, err
		}
	}
}

// waitForSpace returns once the disk of the data directory accepts writes again, and at the
// earliest restartPause after its call. err is the error of the failed start.
func waitForSpace(ctx context.Context, cfg Config, err error, logger *slog.Logger) error {
	began := time.Now()
	probe := func() error {
		if time.Since(began) < restartPause {
			return fmt.Errorf("%w: %w", syscall.ENOSPC, err)
		}
		return probeSpace(cfg.DataDir)
	}
	// The next start reports other errors of the probe.
	if _ = retryOnFullDisk(ctx, cfg.DataDir, logger, nil, probe); ctx.Err() != nil {
		return ctx.Err()
	}
	logger.Info(
		"disk has space again: starting", "dir", cfg.DataDir,
		"waited", time.Since(began).Round(time.Second),
	)
	extendStart(logger, cfg.StartTimeout+extendBy)
	return nil
}

// retryOnFullDisk repeats try while its error means that the disk of dir is full, and returns its
// last error. It returns early when ctx ends or a part of the server fails.
func retryOnFullDisk(
	ctx context.Context, dir string, logger *slog.Logger, failed <-chan error, try func() error,
) error {
	began, loggedAt := time.Now(), time.Time{}
	for {
		err := try()
		if !isDiskFull(err) {
			return err
		}
		if now := time.Now(); now.Sub(loggedAt) >= waitLogInterval {
			loggedAt = now
			logger.Error(
				"waiting: the disk is full; the start continues by itself once bytes and inodes are "+
					"free", "dir", dir, "waited", now.Sub(began).Round(time.Second), "error", err,
			)
			extendStart(logger, extendBy)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-failed:
			return err
		case <-time.After(spacePoll):
		}
	}
}

// extendStart asks the service manager for more time, so that it does not kill a waiting start.
func extendStart(logger *slog.Logger, by time.Duration) {
	state := fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", by.Microseconds())
	if err := notifyServiceManager(state); err != nil {
		logger.Warn("service manager not notified", "state", state, "error", err)
	}
}

// hasNoSpace reports whether the file system of dir has no free blocks or no free inodes.
func hasNoSpace(dir string) bool {
	var disk syscall.Statfs_t
	err := syscall.Statfs(dir, &disk)
	return err == nil && disk.Blocks > 0 && (disk.Bavail == 0 || disk.Files > 0 && disk.Ffree == 0)
}

// probeSpace writes a temporary file into dir and returns the error of the write.
func probeSpace(dir string) error {
	file, err := os.CreateTemp(dir, ".room-*.tmp")
	if errors.Is(err, os.ErrNotExist) {
		return nil // the start creates the folder or reports the error
	}
	if err != nil {
		return err
	}
	// Without a name, the file disappears even when the process is killed.
	err = os.Remove(file.Name())
	if err == nil {
		_, err = file.Write(make([]byte, probeBytes))
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// writeOrPostpone calls write, which writes a file that the server itself does not read. When the
// disk is full, it leaves the write to finishStart and returns nil.
func (s *process) writeOrPostpone(name string, write func() error) error {
	err := write()
	if !isDiskFull(err) {
		return err
	}
	s.logger.Warn("file not written: the disk is full", "file", name, "error", err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.postponed = append(s.postponed, write)
	return nil
}

// writeWhenSpace repeats write while the disk is full. The parts of the server that are up serve
// meanwhile.
func (s *process) writeWhenSpace(ctx context.Context, write func() error) error {
	return retryOnFullDisk(ctx, string(s.dir), s.logger, s.failed, write)
}
