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

// server is one run of the server's process.
type server struct {
	command *exec.Cmd
	output  *output
	exited  chan struct{} // closed when the process is gone; err is set before
	err     error
}

// errEnded says that the server's process ended before it was ready.
var errEnded = errors.New("the server ended while starting")

// How a server that dies is started again, and how often a start is tried when processes of the one
// before still hold its memory.
const (
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 5 * time.Second
	memoryWait   = 10 * time.Second
)

// supervise runs the server until Stop. It tells started once whether the first start succeeded.
//
// It keeps its thread to itself: the kernel ties the server's death signal to the thread that
// started it.
func (c *Cluster) supervise(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(c.done)
	defer func() { c.outcome = errors.Join(c.outcome, c.lock.Close()) }()
	defer c.socket.remove()

	begun := time.Now()
	running, err := c.launch()
	started <- err
	if err != nil {
		return
	}
	c.log.Info(
		"private postgres ready", "dir", c.data, "version", c.binary.major,
		"duration_ms", time.Since(begun).Milliseconds(),
	)
	for {
		select {
		case <-c.stop:
			c.outcome = c.shutDown(running)
			return
		case <-running.exited:
			c.log.Error(
				"private postgres ended by itself; starting it again", "error", running.err,
				"last_lines", running.output.last(),
			)
		}
		if running = c.relaunch(); running == nil {
			return
		}
		c.log.Info("private postgres ready again", "dir", c.data)
	}
}

// relaunch starts the server again, however long it takes; nil when Stop came first.
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
		c.log.Error(
			"private postgres does not start; trying again", "error", err,
			"wait_ms", backoff.Milliseconds(),
		)
		select {
		case <-c.stop:
			return nil
		case <-time.After(backoff):
		}
		backoff = min(2*backoff, lastBackoff)
	}
}

// launch starts the server and waits until it accepts connections, through recovery if there is
// any. It gives up when the server ends or Stop comes.
func (c *Cluster) launch() (*server, error) {
	for begun := time.Now(); ; {
		// Also when a server of this process has died: its lock files are left, and its process id
		// may be in use again.
		if err := takeOver(context.Background(), c.data, c.socket, c.log); err != nil {
			return nil, err
		}
		running, err := c.launchOnce()
		// Children of a server that was killed hold its shared memory for a moment.
		if errors.Is(err, errEnded) && running.output.sawLock() && time.Since(begun) < memoryWait {
			continue
		}
		if err != nil {
			return nil, err
		}
		return running, nil
	}
}

func (c *Cluster) launchOnce() (*server, error) {
	running := &server{output: newOutput(c.log), exited: make(chan struct{})}
	arguments := []string{"-D", c.data}
	for _, setting := range c.settings() {
		arguments = append(arguments, "-c", setting)
	}
	command := exec.Command(filepath.Join(c.binary.dir, "postgres"), arguments...)
	command.Dir, command.Env, command.SysProcAttr = "/", environment(), c.owner.attributes(
		syscall.SIGINT,
	)
	command.Stdout, command.Stderr = running.output, running.output
	// A child of a killed server may hold the pipe open; its words are not worth waiting for.
	command.WaitDelay = time.Second
	if err := command.Start(); err != nil {
		return running, err
	}
	running.command = command
	go func() {
		running.err = command.Wait()
		close(running.exited)
	}()

	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-running.exited:
			return running, fmt.Errorf(
				"%w: %s: %s", errEnded, command.ProcessState, running.output.last(),
			)
		case <-c.stop:
			return running, errors.Join(errors.New("stopped while starting"), c.shutDown(running))
		case <-look.C:
			if state := readPIDFile(c.data); state.pid == command.Process.Pid && state.ready {
				return running, nil
			}
		}
	}
}

// shutDown ends the server, in order if it can be done in time.
func (c *Cluster) shutDown(running *server) error {
	for _, step := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{
		{syscall.SIGINT, fastShutdown}, {syscall.SIGQUIT, immediateShutdown},
		{syscall.SIGKILL, killed},
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
			c.log.Warn(
				"private postgres has not ended in time", "signal", step.signal.String(),
				"waited_ms", step.wait.Milliseconds(),
			)
		}
	}
	return fmt.Errorf("private postgres: process %d cannot be ended", running.command.Process.Pid)
}

// abort ends a server that Stop's caller will wait for no longer. The process id in postmaster.pid
// counts only if it is a server's: the file outlives a server that was killed, and its process id
// may be somebody else's by now.
func (c *Cluster) abort() {
	pid := readPIDFile(c.data).pid
	if pids, err := servers(c.data); err == nil && slices.Contains(pids, pid) {
		_ = syscall.Kill(pid, syscall.SIGQUIT) // it may have ended by now
	}
}

// settings are the server's, given on its command line so that a later version of this program can
// change them. What is not named is PostgreSQL's default; fsync and full_page_writes are named
// because the promises rest on them.
func (c *Cluster) settings() []string {
	return []string{
		"listen_addresses=",
		"unix_socket_directories=" + c.socket.path,
		"unix_socket_permissions=0700",
		fmt.Sprintf("port=%d", port),
		"fsync=on",
		"full_page_writes=on",
		// Nobody replicates a private server.
		"wal_level=minimal",
		"max_wal_senders=0",
		// Small: it shares the machine with the broker, and the read models of 100,000 hubs are
		// some 100 MB.
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
		// Lines are read by output: SQLSTATE, severity, message. Statements may hold hashes and
		// names: they stay out.
		"log_destination=stderr",
		"logging_collector=off",
		"log_line_prefix=%e ",
		"log_timezone=UTC",
		"log_min_messages=warning",
		"log_min_error_statement=panic",
		"lc_messages=C",
	}
}
