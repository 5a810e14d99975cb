package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// fastTimeout bounds a fast shutdown (SIGINT), which writes everything out.
	fastTimeout = 5 * time.Second
	// immediateTimeout bounds an immediate shutdown (SIGQUIT), after which the next start recovers.
	immediateTimeout = 3 * time.Second
	// killTimeout bounds the end after SIGKILL.
	killTimeout = 2 * time.Second
	// orphanTimeout bounds the end of child processes whose postmaster has ended.
	orphanTimeout = 500 * time.Millisecond
)

// takeOver shuts down a server that still runs on the cluster in data, with its child processes and
// shared memory, and removes stale lock files. The caller must hold the directory's lock, so that
// no other process uses the server.
func takeOver(ctx context.Context, data string, socket socketDir, logger *slog.Logger) error {
	pids, err := servers(data)
	if err != nil {
		return err
	}
	if len(pids) > 0 {
		logger.Warn("shutting down a postgres that outlived its parent", "dir", data, "pids", pids)
	}
	for _, step := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{
		{syscall.SIGINT, fastTimeout}, {syscall.SIGQUIT, immediateTimeout},
		{syscall.SIGKILL, killTimeout},
	} {
		if len(pids) == 0 {
			break
		}
		wait := step.wait
		if postmaster := readPIDFile(data).pid; slices.Contains(pids, postmaster) &&
			step.signal != syscall.SIGKILL {
			_ = syscall.Kill(postmaster, step.signal) // it may have ended by now
		} else {
			// Children end by themselves when they notice that their postmaster has ended. SIGINT
			// would only cancel their queries.
			wait = min(wait, orphanTimeout)
			for _, pid := range pids {
				if step.signal != syscall.SIGINT {
					_ = syscall.Kill(pid, step.signal)
				}
			}
		}
		if pids, err = awaitNone(ctx, data, wait); err != nil {
			return err
		}
	}
	if len(pids) > 0 {
		return fmt.Errorf("a database server of an earlier run cannot be ended: processes %v", pids)
	}
	return removeLockFiles(data, socket)
}

// removeLockFiles removes the lock files and the socket of a server that has ended. PostgreSQL
// takes a stale lock file for a living server if its process id belongs to another process of the
// same user, or to one of its threads. That is likely in a container, where process ids start from
// 1 each time.
func removeLockFiles(data string, socket socketDir) error {
	for _, path := range []string{
		filepath.Join(data, pidFile), socketFile(socket.path), socketFile(socket.path) + ".lock",
	} {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// awaitNone waits until no server process is left in data. It returns the processes that are left
// after limit.
func awaitNone(ctx context.Context, data string, limit time.Duration) ([]int, error) {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		pids, err := servers(data)
		if err != nil || len(pids) == 0 {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-deadline.C:
			return pids, nil
		case <-poll.C:
		}
	}
}

const pidFile = "postmaster.pid"

// postmasterPID is the content of a server's postmaster.pid.
type postmasterPID struct {
	pid   int
	ready bool
}

// readPIDFile reads postmaster.pid: the process id on the first line, the state on the eighth.
// Missing lines leave zero values: the server writes the file line by line as it starts.
func readPIDFile(data string) postmasterPID {
	content, err := os.ReadFile(filepath.Join(data, pidFile))
	if err != nil {
		return postmasterPID{}
	}
	lines := strings.Split(string(content), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || pid <= 0 {
		return postmasterPID{}
	}
	return postmasterPID{pid: pid, ready: len(lines) > 7 && strings.TrimSpace(lines[7]) == "ready"}
}
