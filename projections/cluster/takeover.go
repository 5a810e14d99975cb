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

// How long a server gets for each way of ending it. A fast shutdown writes everything out; an
// immediate one leaves that to recovery; SIGKILL is the last resort.
const (
	fastShutdown      = 5 * time.Second
	immediateShutdown = 3 * time.Second
	killed            = 2 * time.Second
	orphanedChildren  = 500 * time.Millisecond
)

// takeOver leaves the cluster in data without a server: one that outlived the process that started
// it is shut down, together with whatever of it is left, and its shared memory with it. Then it
// removes the lock files that no server stands behind. The caller holds the directory's lock, so no
// server on it can be anybody's.
func takeOver(ctx context.Context, data string, socket socketDir, log *slog.Logger) error {
	pids, err := servers(data)
	if err != nil {
		return err
	}
	if len(pids) > 0 {
		log.Warn(
			"a database server has outlived the process that started it; shutting it down",
			"dir", data, "pids", pids,
		)
	}
	for _, step := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{
		{syscall.SIGINT, fastShutdown}, {syscall.SIGQUIT, immediateShutdown},
		{syscall.SIGKILL, killed},
	} {
		if len(pids) == 0 {
			break
		}
		wait := step.wait
		if postmaster := readPIDFile(data).pid; slices.Contains(pids, postmaster) &&
			step.signal != syscall.SIGKILL {
			_ = syscall.Kill(postmaster, step.signal) // it may have ended by now
		} else {
			// Children whose postmaster is gone end by themselves when they notice. SIGINT means
			// something else to them.
			wait = min(wait, orphanedChildren)
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

// removeLockFiles removes the lock files of a server that is gone, and its socket. PostgreSQL takes
// a stale lock file for a living server when its process id belongs to another process of the same
// user, or to a thread of one: in a container, where process ids begin anew at every start, that is
// likely.
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

// awaitNone waits until no server process is left in data, and gives those that still are when the
// time is up.
func awaitNone(ctx context.Context, data string, limit time.Duration) ([]int, error) {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
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
		case <-look.C:
		}
	}
}

const pidFile = "postmaster.pid"

// postmasterPID is what a server writes about itself into its data directory.
type postmasterPID struct {
	pid   int
	ready bool
}

// readPIDFile reads postmaster.pid: the process id stands on its first line, the state on its
// eighth. What is not there yet is zero: the server writes the file line by line as it starts.
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
