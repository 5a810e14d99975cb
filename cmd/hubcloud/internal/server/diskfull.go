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
	// roomPoll is the pause between two looks at a full disk.
	roomPoll = 500 * time.Millisecond
	// roomRetry is the pause after a start that failed although there was room to begin with.
	roomRetry = 3 * time.Second
	// roomProbe is how much must be writable before a start is tried again.
	roomProbe = 4 << 20
	// extendFor is how much time a start that waits asks the service manager for, again and again.
	extendFor = time.Minute
)

// diskFullState is PostgreSQL's SQLSTATE for a full disk.
const diskFullState = "53100"

// diskFull reports whether an error is that of a disk without room for bytes or files, or of a
// quota that is used up. Programs that the start runs, PostgreSQL's, say so in words only.
func diskFull(err error) bool {
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

// startWhenSpace starts the service. While the disk is full it waits, with nothing of the service
// left running, and starts it anew once there is room: that may take hours, so --start-timeout
// bounds each start and not the wait. It returns when the service is ready, when a start fails for
// another reason, or when ctx ends.
func startWhenSpace(ctx context.Context, cfg Config, log *slog.Logger) (*Server, error) {
	for {
		before := noRoom(cfg.DataDir)
		s, err := Start(ctx, cfg, log)
		if err == nil || ctx.Err() != nil {
			return s, err
		}
		// A part that fails on a full disk does not always say why.
		if !diskFull(err) && (lasting(err) || !before && !diskFull(probeRoom(cfg.DataDir))) {
			return nil, err
		}
		if err := awaitRoom(ctx, cfg, err, log); err != nil {
			return nil, err
		}
	}
}

// awaitRoom returns once the disk of the data directory takes writes again, and no sooner than a
// moment after the start that failed with err.
func awaitRoom(ctx context.Context, cfg Config, err error, log *slog.Logger) error {
	began, told := time.Now(), time.Time{}
	for wait := roomRetry; ; wait = roomPoll {
		if now := time.Now(); now.Sub(told) >= awaitTell {
			told = now
			sayDiskFull(log, cfg.DataDir, now.Sub(began), err)
			extendStart(log, extendFor)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
		full := probeRoom(cfg.DataDir)
		if !diskFull(full) {
			break // anything else is for the start to tell
		}
		err = full
	}
	log.Info(
		"disk has room again: starting", "dir", cfg.DataDir,
		"waited", time.Since(began).Round(time.Second),
	)
	extendStart(log, cfg.StartTimeout+extendFor)
	return nil
}

func sayDiskFull(log *slog.Logger, dir string, waited time.Duration, err error) {
	log.Error(
		"waiting: the disk is full, and a start needs room; make room, in bytes and in files: "+
			"the start goes on by itself",
		"dir",
		dir,
		"waited",
		waited.Round(time.Second),
		"error",
		err,
	)
}

// extendStart asks the service manager for more time: it would take a start that waits for one that
// hangs.
func extendStart(log *slog.Logger, by time.Duration) {
	if err := notifyServiceManager(fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", by.Microseconds())); err != nil {
		log.Warn("the service manager does not hear that the start takes longer", "error", err)
	}
}

// noRoom reports whether the file system of dir has nothing left.
func noRoom(dir string) bool {
	var disk syscall.Statfs_t
	err := syscall.Statfs(dir, &disk)
	return err == nil && disk.Blocks > 0 && (disk.Bavail == 0 || disk.Files > 0 && disk.Ffree == 0)
}

// probeRoom writes a file into dir that nobody sees, and returns why that failed.
func probeRoom(dir string) error {
	file, err := os.CreateTemp(dir, ".room-*.tmp")
	if errors.Is(err, os.ErrNotExist) {
		return nil // the start makes the folder, or tells why not
	}
	if err != nil {
		return err
	}
	// A file without a name is gone when the process is killed.
	err = os.Remove(file.Name())
	if err == nil {
		_, err = file.Write(make([]byte, roomProbe))
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// writeOrPostpone does what writes a file that the service itself can do without. On a full disk it
// keeps it for finishStart.
func (s *Server) writeOrPostpone(what string, write func() error) error {
	err := write()
	if !diskFull(err) {
		return err
	}
	s.logger.Warn(
		"file not written: the disk is full; written once there is room", "file", what,
		"error", err,
	)
	s.postponedMu.Lock()
	defer s.postponedMu.Unlock()
	s.postponed = append(s.postponed, write)
	return nil
}

// writeWithRoom does what writes, again and again while the disk is full. The service serves what
// it can meanwhile. It returns when ctx ends or a part of the service fails.
func (s *Server) writeWithRoom(ctx context.Context, write func() error) error {
	began, told := time.Now(), time.Time{}
	for {
		err := write()
		if !diskFull(err) {
			return err
		}
		if now := time.Now(); now.Sub(told) >= awaitTell {
			told = now
			sayDiskFull(s.logger, string(s.dir), now.Sub(began), err)
			extendStart(s.logger, extendFor)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case failed := <-s.failed:
			return failed
		case <-time.After(roomPoll):
		}
	}
}
