package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"hubcloud/streams/disk"
)

// halfMade is the prefix of a cluster's directory until initdb has finished.
const halfMade = "new-"

// makeDir creates the directory of the clusters, the lock and the socket.
func makeDir(dir string, owner identity) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return owner.adopt(dir)
}

// lockDir locks the directory for this process, or fails with ErrInUse. The kernel releases the
// lock however the process ends. The server does not inherit the lock.
func lockDir(dir string) (*disk.Lock, error) {
	lock, err := disk.AcquireLock(filepath.Join(dir, "lock"))
	if errors.Is(err, disk.ErrInUse) {
		return nil, ErrInUse
	}
	return lock, err
}

// removeHalfMade removes what interrupted runs of initdb have left.
func removeHalfMade(ctx context.Context, dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, halfMade+"*"))
	if err != nil {
		return err
	}
	for _, path := range left {
		if err := removeAbandoned(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

// removeAbandoned removes a directory in which initdb was killed. The server that initdb started
// ends a moment later, and creates files until then.
func removeAbandoned(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		if pids, err := servers(path); err == nil {
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by now
			}
		}
		err := os.RemoveAll(path)
		if err == nil {
			return nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return err
		}
	}
}

// initialize creates the cluster c.data, completely or not at all: initdb writes to a temporary
// directory, which is renamed at the end.
func (c *Cluster) initialize(ctx context.Context) error {
	dir := filepath.Dir(c.data)
	half, err := os.MkdirTemp(dir, halfMade)
	if err != nil {
		return err
	}
	defer os.RemoveAll(half)
	if err := c.owner.adopt(half); err != nil {
		return err
	}
	begun := time.Now()
	// auth=trust is safe because only the server's user can enter the socket's directory. locale=C
	// orders texts by their bytes.
	command := exec.CommandContext(ctx, filepath.Join(c.binary.dir, "initdb"),
		"--pgdata="+half, "--username="+role, "--auth=trust", "--encoding=UTF8", "--locale=C")
	command.Dir, command.Env = "/", environment()
	command.SysProcAttr = c.owner.attributes(syscall.SIGKILL)
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = time.Second
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		return fmt.Errorf(
			"initdb: %w: %s", errors.Join(err, ctx.Err()), strings.TrimSpace(output.String()),
		)
	}
	if err := os.Rename(half, c.data); err != nil {
		return err
	}
	if err := disk.Sync(dir); err != nil {
		return err
	}
	c.logger.Info(
		"private postgres made", "dir", c.data, "version", c.binary.major, "user_id", c.owner.uid,
		"duration_ms", time.Since(begun).Milliseconds(),
	)
	return nil
}
