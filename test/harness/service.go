package harness

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Service is one process of hubcloud. It keeps its data directory and addresses over restarts.
type Service struct {
	t testing.TB
	// Dir is the data directory.
	Dir string
	// Command is the command to run. Defaults to "serve".
	Command string
	// Args are additional arguments of the command.
	Args []string
	// Program is the path of the binary to run. Defaults to Binary.
	Program string
	// Environment has variables to add to the test's own, as NAME=VALUE.
	Environment []string
	// Under is a command that runs the process, such as "ip netns exec NAME". Empty means none.
	Under []string
	// HTTP, Admin, MQTT and NATS are the addresses that the process listens on.
	HTTP, Admin, MQTT, NATS string

	// joined is set when other processes run the broker and the database.
	joined bool
	// running is shared by the copies that For returns.
	*running
}

// running is the current process of a service.
type running struct {
	process *exec.Cmd
	// ended is closed when the process has exited.
	ended chan struct{}
	log   *tail

	mu sync.Mutex
	// hubs are registered and new.
	hubs []FactoryHub
}

// For returns a copy of the service that reports failures to t.
func (s *Service) For(t testing.TB) *Service {
	other := *s
	other.t = t
	if other.running == nil { // as in a process that does not run the service
		other.running = &running{}
	}
	return &other
}

// Begin starts the process, also after Kill or Stop, and waits until it is ready.
func (s *Service) Begin() {
	s.t.Helper()
	s.Launch()
	s.AwaitReady()
}

// Launch starts the process, also after Kill or Stop, without waiting.
func (s *Service) Launch() {
	s.t.Helper()
	os.Remove(filepath.Join(s.Dir, "endpoints.json"))
	s.log = &tail{}
	args := []string{
		cmp.Or(s.Command, "serve"), "--data-dir", s.Dir, "--http", s.HTTP, "--admin", s.Admin, "--environment", "dev",
	}
	if !s.joined {
		args = append(args, "--mqtt", s.MQTT, "--nats", s.NATS)
	}
	args = append(args, s.Args...)
	line := slices.Concat(s.Under, []string{s.program()}, args)
	s.process = exec.Command(line[0], line[1:]...)
	// Tests invite the same people many times; the default limits would slow them down. Receivers of
	// webhooks are on this machine.
	s.process.Env = append(
		os.Environ(), "HUBCLOUD_INVITATIONS_PER_ADDRESS=1000", "HUBCLOUD_INVITATIONS_PER_ORG=1000",
		"HUBCLOUD_WEBHOOK_PRIVATE_ADDRESSES=true",
	)
	s.process.Env = append(s.process.Env, s.Environment...)
	s.process.Stdout, s.process.Stderr = s.log, s.log
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	Must(s.t, s.process.Start())
	ended := make(chan struct{})
	s.ended = ended
	process := s.process
	go func() {
		defer close(ended)
		process.Wait()
	}()
}

// program returns the path of the service's program.
func (s *Service) program() string {
	s.t.Helper()
	if s.Program != "" {
		return s.Program
	}
	return Binary(s.t)
}

// AwaitReady waits until the process is ready.
func (s *Service) AwaitReady() {
	s.t.Helper()
	deadline := time.Now().Add(startTimeout)
	for {
		text, err := os.ReadFile(filepath.Join(s.Dir, "endpoints.json"))
		if err == nil {
			var bound struct{ HTTP, Admin, MQTT, NATS string }
			if err := json.Unmarshal(text, &bound); err != nil {
				s.t.Fatalf("endpoints.json: %v", err)
			}
			if bound.HTTP != s.HTTP || bound.Admin != s.Admin || bound.MQTT != s.MQTT ||
				bound.NATS != s.NATS {
				s.t.Fatalf("endpoints.json: got %+v, want the addresses of the command line", bound)
			}
			return
		}
		select {
		case <-s.ended:
			s.t.Fatalf("the service exited before it was ready:\n%s", s.log)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the service was not ready within %s:\n%s", startTimeout, s.log)
		}
	}
}

// Kill ends the process with SIGKILL and waits until it has exited.
func (s *Service) Kill() {
	s.process.Process.Kill()
	<-s.ended
}

// Stop ends the process with SIGTERM and returns how long the shutdown took. A shutdown of more
// than a minute fails the test.
func (s *Service) Stop() time.Duration {
	began := time.Now()
	select {
	case <-s.ended:
		return 0
	default:
	}
	s.process.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(time.Minute):
		s.process.Process.Signal(syscall.SIGQUIT)
		<-s.ended
		s.t.Errorf("the service did not stop within a minute:\n%s", s.log)
	}
	return time.Since(began)
}

// Signal sends a signal to the process.
func (s *Service) Signal(signal syscall.Signal) {
	s.t.Helper()
	Must(s.t, s.process.Process.Signal(signal))
}

// Ended returns a channel that is closed when the process has exited.
func (s *Service) Ended() <-chan struct{} { return s.ended }

// ExitCode waits for the process to exit and returns its exit code.
func (s *Service) ExitCode() int {
	<-s.ended
	return s.process.ProcessState.ExitCode()
}

// PID returns the process id.
func (s *Service) PID() int { return s.process.Process.Pid }

// Public returns the base URL of the service, without /v1.
func (s *Service) Public() string { return "http://" + s.HTTP }

// Base returns the base URL of the API, with /v1.
func (s *Service) Base() string { return "http://" + s.HTTP + "/v1" }
