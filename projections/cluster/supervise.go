package cluster

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// server is a process of the PostgreSQL server.
type server struct {
	command *exec.Cmd
	output  *output
	exited  chan struct{} // closed when the process has ended; err is set before
	err     error
}

// errEnded means that the server's process ended before it was ready.
var errEnded = errors.New("the server ended while starting")

const (
	// firstBackoff and lastBackoff are the first and the longest pause between two starts.
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 5 * time.Second
	// memoryTimeout bounds how long starts are repeated while processes of the previous server hold
	// its shared memory.
	memoryTimeout = 10 * time.Second
)

// supervise runs the server until Stop. It sends the outcome of the first start to started.
//
// It locks its goroutine to a thread: the kernel sends the server's death signal when the thread
// that started the server ends.
func (c *Cluster) supervise(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(c.done)
	defer func() { c.outcome = errors.Join(c.outcome, c.lock.Release()) }()
	defer c.socket.remove()

	begun := time.Now()
	running, err := c.launch()
	started <- err
	if err != nil {
		return
	}
	c.logger.Info(
		"private postgres ready", "dir", c.data, "version", c.binary.major,
		"duration_ms", time.Since(begun).Milliseconds(),
	)
	for {
		select {
		case <-c.stop:
			c.outcome = c.shutDown(running)
			return
		case <-running.exited:
			c.logger.Error(
				"private postgres died; starting it again", "error", running.err,
				"last_lines", running.output.last(),
			)
		}
		if running = c.relaunch(); running == nil {
			return
		}
		c.logger.Info("private postgres ready again", "dir", c.data)
	}
}

// relaunch starts the server again, with as many tries as it takes. It returns nil if Stop is
// called first.
func (c *Cluster) relaunch() *server {
	backoff := firstBackoff
	for {
		running, err := c.launch()
		if err == nil {
			return running
		}
		select {
		case <-c.stop:
			return nil
		default:
		}
		c.logger.Error(
			"private postgres not started; trying again", "error", err,
			"retry_ms", backoff.Milliseconds(),
		)
		select {
		case <-c.stop:
			return nil
		case <-time.After(backoff):
		}
		backoff = min(2*backoff, lastBackoff)
	}
}

// launch starts the server and waits until it accepts connections, after recovery if needed. It
// fails if the server ends or Stop is called.
func (c *Cluster) launch() (*server, error) {
	for begun := time.Now(); ; {
		// A server that has died leaves lock files, and its process id may be in use again.
		if err := takeOver(context.Background(), c.data, c.socket, c.logger); err != nil {
			return nil, err
		}
		running, err := c.launchOnce()
		// Children of a server that was killed hold its shared memory for a moment.
		if errors.Is(err, errEnded) && running.output.foundLock() &&
			time.Since(begun) < memoryTimeout {
			continue
		}
		if err != nil {
			return nil, err
		}
		return running, nil
	}
}

func (c *Cluster) launchOnce() (*server, error) {
	running := &server{output: newOutput(c.logger), exited: make(chan struct{})}
	arguments := []string{"-D", c.data}
	for _, setting := range c.settings() {
		arguments = append(arguments, "-c", setting)
	}
	command := exec.Command(filepath.Join(c.binary.dir, "postgres"), arguments...)
	command.Dir, command.Env = "/", environment()
	command.SysProcAttr = c.owner.attributes(syscall.SIGINT)
	command.Stdout, command.Stderr = running.output, running.output
	// A child of a killed server may hold the pipe open.
	command.WaitDelay = time.Second
	if err := command.Start(); err != nil {
		return running, err
	}
	running.command = command
	go func() {
		running.err = command.Wait()
		close(running.exited)
	}()

	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	for {
		select {
		case <-running.exited:
			return running, fmt.Errorf(
				"%w: %s: %s", errEnded, command.ProcessState, running.output.last(),
			)
		case <-c.stop:
			return running, errors.Join(errors.New("stopped while starting"), c.shutDown(running))
		case <-poll.C:
			if state := readPIDFile(c.data); state.pid == command.Process.Pid && state.ready {
				return running, nil
			}
		}
	}
}

// shutDown ends the server: fast, then immediately, then with SIGKILL.
func (c *Cluster) shutDown(running *server) error {
	for _, step := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{
		{syscall.SIGINT, fastTimeout}, {syscall.SIGQUIT, immediateTimeout},
		{syscall.SIGKILL, killTimeout},
	} {
		_ = running.command.Process.Signal(step.signal) // it may have ended by now
		select {
		case <-running.exited:
			if step.signal == syscall.SIGINT && running.err != nil {
				return fmt.Errorf(
					"private postgres: shutdown: %w: %s", running.err, running.output.last(),
				)
			}
			return nil
		case <-time.After(step.wait):
			c.logger.Warn(
				"private postgres not ended in time", "signal", step.signal.String(),
				"waited_ms", step.wait.Milliseconds(),
			)
		}
	}
	return fmt.Errorf("private postgres: process %d cannot be ended", running.command.Process.Pid)
}

// abort ends the server at once, when the context of Stop has ended. It first checks that the
// process id in postmaster.pid is a server's: a killed server leaves the file, and the id may
// belong to another process by now.
func (c *Cluster) abort() {
	pid := readPIDFile(c.data).pid
	if pids, err := servers(c.data); err == nil && slices.Contains(pids, pid) {
		_ = syscall.Kill(pid, syscall.SIGQUIT) // it may have ended by now
	}
}

// settings returns the server's settings. They are passed on its command line, so that a later
// version of this program can change them. fsync and full_page_writes repeat defaults on which the
// package's promises depend.
func (c *Cluster) settings() []string {
	return []string{
		"listen_addresses=",
		"unix_socket_directories=" + c.socket.path,
		"unix_socket_permissions=0700",
		fmt.Sprintf("port=%d", port),
		"fsync=on",
		"full_page_writes=on",
		// A private server has no replicas.
		"wal_level=minimal",
		"max_wal_senders=0",
		// Small, since the server shares the machine with the broker: the read models of 100,000
		// hubs have some 100 MB.
		"max_connections=64",
		"shared_buffers=64MB",
		"huge_pages=off",
		"min_wal_size=48MB",
		"max_wal_size=512MB",
		"checkpoint_timeout=15min",
		"autovacuum_max_workers=2",
		"max_parallel_workers_per_gather=0",
		"jit=off",
		"timezone=UTC",
		// The format that output parses, without statements: these may contain hashes and names.
		"log_destination=stderr",
		"logging_collector=off",
		"log_line_prefix=%e ",
		"log_timezone=UTC",
		"log_min_messages=warning",
		"log_min_error_statement=panic",
		"lc_messages=C",
	}
}
