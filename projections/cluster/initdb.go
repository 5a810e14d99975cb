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

	"hubcloud/streams/durablefile"
)

// halfMade is the prefix of a cluster's directory until initdb has finished.
const halfMade = "new-"

// makeDir makes the directory that clusters, lock and socket are in.
func makeDir(dir string, owner identity) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return owner.adopt(dir)
}

// lockDir takes the directory for this process. The kernel lets go of the lock however the process
// ends, and the server does not inherit it.
func lockDir(dir string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, ErrInUse
		}
		return nil, fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	return lock, nil
}

// removeHalfMade removes what an interrupted initdb left.
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

// removeAbandoned removes a directory in which initdb was killed. The server that initdb runs in
// there notices that a moment later, and until then it makes new files.
func removeAbandoned(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, killed)
	defer cancel()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
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
		case <-look.C:
		case <-ctx.Done():
			return err
		}
	}
}

// initialize makes the cluster c.data. It stands there whole or not at all: initdb works beside it,
// and the finished directory is renamed.
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
	// Connections are trusted: the socket is in a directory that only the server's user may enter.
	// Order of text is order of bytes.
	command := exec.CommandContext(ctx, filepath.Join(c.binary.dir, "initdb"),
		"--pgdata="+half, "--username="+role, "--auth=trust", "--encoding=UTF8", "--locale=C")
	command.Dir, command.Env, command.SysProcAttr = "/", environment(), c.owner.attributes(
		syscall.SIGKILL,
	)
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
	if err := durablefile.Sync(dir); err != nil {
		return err
	}
	c.log.Info(
		"private postgres made", "dir", c.data, "version", c.binary.major, "user_id", c.owner.uid,
		"duration_ms", time.Since(begun).Milliseconds(),
	)
	return nil
}
