package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// startTimeout bounds a start. A first start creates a database.
const startTimeout = 90 * time.Second

var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "hubcloud-test-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "hubcloud")
	return path, build("-o", path)
})

// root returns the root folder of the service's module.
func root() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "hubcloud").Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// build builds the program without the test module (GOWORK=off), as releases are built.
func build(options ...string) error {
	dir, err := root()
	if err != nil {
		return err
	}
	command := exec.Command(
		"go",
		slices.Concat([]string{"build"}, options, []string{"./cmd/hubcloud"})...)
	command.Dir, command.Env = dir, append(os.Environ(), "GOWORK=off")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// Binary returns the path of the binary under test. It builds the binary once per test run, unless
// HUBCLOUD_TEST_BINARY names one.
func Binary(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("HUBCLOUD_TEST_BINARY"); path != "" {
		return path
	}
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// RemoveBinary removes the binary that Binary built. TestMain calls RemoveBinary last.
func RemoveBinary() {
	if path, err := binary(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
}

// BuildWith builds a binary with some source files replaced and returns its path. The keys of
// replaced are paths in the repository. The binary is removed when the test ends.
func BuildWith(t testing.TB, replaced map[string][]byte) string {
	t.Helper()
	sources, err := root()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for name, content := range replaced {
		file := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[filepath.Join(sources, name)] = file
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	list, path := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "hubcloud")
	if err := os.WriteFile(list, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := build("-overlay", list, "-o", path); err != nil {
		t.Fatal(err)
	}
	return path
}

// Service is one process of hubcloud.
type Service struct {
	t    testing.TB
	Dir  string
	Args []string
	// Program is the path of the binary to run. Defaults to Binary.
	Program string
	// Environment has variables to add to the test's own, as NAME=VALUE.
	Environment []string

	*running

	// Under is a command that runs the process, such as "ip netns exec NAME". Empty means none.
	Under []string

	// joined is set when other processes run the broker and the database.
	joined bool
	// HTTP, Admin, MQTT and NATS are the addresses that the process listens on.
	HTTP, Admin, MQTT, NATS string
}

// running is the process of a service.
type running struct {
	process *exec.Cmd
	ended   chan struct{}
	log     *tail
}

// For returns a copy of the service that reports failures to t.
func (s *Service) For(t testing.TB) *Service {
	other := *s
	other.t = t
	return &other
}

// Start runs `hubcloud serve` with the additional arguments, on a new data directory and free
// ports, and waits until it is ready. Directory and ports stay the same over restarts. The service
// is stopped when the test ends.
func Start(t testing.TB, args ...string) *Service {
	t.Helper()
	return StartIn(t, t.TempDir(), args...)
}

// StartWith is Start with additional environment variables, as NAME=VALUE.
func StartWith(t testing.TB, environment []string, args ...string) *Service {
	t.Helper()
	s := &Service{
		t: t, Dir: t.TempDir(), Args: args, Environment: environment, running: &running{},
		HTTP: FreeAddress(t), Admin: FreeAddress(t), MQTT: FreeAddress(t), NATS: FreeAddress(t),
	}
	s.launch()
	return s
}

// StartUnder is Start under a command, for example one that lowers a limit.
func StartUnder(t testing.TB, under []string, args ...string) *Service {
	t.Helper()
	s := &Service{
		t: t, Dir: t.TempDir(), Args: args, Under: under, running: &running{},
		HTTP: FreeAddress(t), Admin: FreeAddress(t), MQTT: FreeAddress(t), NATS: FreeAddress(t),
	}
	s.launch()
	return s
}

// StartIn is Start on the given data directory.
func StartIn(t testing.TB, dir string, args ...string) *Service {
	t.Helper()
	s := &Service{
		t: t, Dir: dir, Args: args, running: &running{},
		HTTP: FreeAddress(t), Admin: FreeAddress(t), MQTT: FreeAddress(t), NATS: FreeAddress(t),
	}
	s.launch()
	return s
}

// Replica starts another process that serves the API on this service's broker and database. The
// replica is stopped before the service.
func (s *Service) Replica(args ...string) *Service {
	s.t.Helper()
	return s.ReplicaOf("", args...)
}

// ReplicaOf is Replica with another binary, such as one from BuildWith.
func (s *Service) ReplicaOf(program string, args ...string) *Service {
	s.t.Helper()
	database := url.Values{
		"host":    {filepath.Join(s.Dir, "postgres", "socket")},
		"port":    {"5432"},
		"user":    {"hubcloud"},
		"sslmode": {"disable"},
	}
	r := &Service{
		t: s.t, Dir: s.t.TempDir(), Program: program, running: &running{}, HTTP: FreeAddress(s.t),
		Admin: FreeAddress(s.t), MQTT: s.MQTT, NATS: s.NATS,
		Args: append([]string{
			"--roles", "api", "--nats-url", "nats://" + s.NATS, "--nats-credentials",
			filepath.Join(s.Dir, "nats-credentials.json"), "--public-mqtt", s.MQTT,
			"--postgres-url",
			(&url.URL{Scheme: "postgres", Path: "/postgres", RawQuery: database.Encode()}).String(),
			"--ca-cert", filepath.Join(s.Dir, "ca", "ca.pem"), "--ca-key",
			filepath.Join(s.Dir, "ca", "ca-key.pem"),
		}, args...),
	}
	r.launch()
	return r
}

// Join starts a process with all roles on a broker and a database that the arguments name.
// Addresses mqtt and nats are those that the broker announces.
func Join(t testing.TB, mqtt, nats string, args ...string) *Service {
	t.Helper()
	s := &Service{
		t: t, Dir: t.TempDir(), Args: args, running: &running{}, joined: true,
		HTTP: FreeAddress(t), Admin: FreeAddress(t), MQTT: mqtt, NATS: nats,
	}
	s.launch()
	return s
}

// Place is where a process runs: its IP address and the command that runs it. The zero value is the
// loopback address of this machine.
type Place struct {
	Address string
	Under   []string
}

// Joining is Join at a place, but does not start the process. Call Begin, or Launch and AwaitReady.
func Joining(t testing.TB, at Place, mqtt, nats string, args ...string) *Service {
	t.Helper()
	s := &Service{
		t: t, Dir: t.TempDir(), Args: args, running: &running{}, joined: true, Under: at.Under,
		HTTP: net.JoinHostPort(
			at.Address, "8080",
		), Admin: net.JoinHostPort(at.Address, "9090"), MQTT: mqtt, NATS: nats,
	}
	if len(at.Under) == 0 {
		s.HTTP, s.Admin = FreeAddress(t), FreeAddress(t)
	}
	s.stopWithTest()
	return s
}

// launch starts the service and stops it when the test ends.
func (s *Service) launch() {
	s.t.Helper()
	s.Begin()
	s.stopWithTest()
}

// stopWithTest stops the service when the test ends.
func (s *Service) stopWithTest() {
	s.t.Cleanup(func() {
		if s.process == nil {
			return
		}
		s.Stop()
		if s.t.Failed() {
			s.t.Logf(
				"last log lines of the service, without successful requests:\n%s",
				s.log.without("level=INFO msg=request"),
			)
		}
	})
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
		"serve",
		"--data-dir",
		s.Dir,
		"--http",
		s.HTTP,
		"--admin",
		s.Admin,
		"--environment",
		"dev",
	}
	if !s.joined {
		args = append(args, "--mqtt", s.MQTT, "--nats", s.NATS)
	}
	args = append(args, s.Args...)
	program := s.Program
	if program == "" {
		program = Binary(s.t)
	}
	line := append(append(append([]string{}, s.Under...), program), args...)
	s.process = exec.Command(line[0], line[1:]...)
	// Tests invite the same people many times; the default limits would slow them down.
	s.process.Env = append(
		os.Environ(), "HUBCLOUD_INVITATIONS_PER_ADDRESS=1000", "HUBCLOUD_INVITATIONS_PER_ORG=1000",
	)
	s.process.Env = append(s.process.Env, s.Environment...)
	s.process.Stdout, s.process.Stderr = s.log, s.log
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan struct{})
	s.ended = ended
	process := s.process
	go func() {
		defer close(ended)
		process.Wait()
	}()
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
			s.t.Fatalf("the service is not ready within %s:\n%s", startTimeout, s.log)
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
	if err := s.process.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
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

// Log returns the last lines that the process printed.
func (s *Service) Log() string { return s.log.String() }

// Public returns the base URL of the service, without /v1.
func (s *Service) Public() string { return "http://" + s.HTTP }

// Base returns the base URL of the API, with /v1.
func (s *Service) Base() string { return "http://" + s.HTTP + "/v1" }

// Inventory registers new hubs.
func (s *Service) Inventory(count int) []FactoryHub {
	s.t.Helper()
	var all []FactoryHub
	for _, made := range s.CLI("inventory", "generate", "--count", strconv.Itoa(count), "--prefix", "try") {
		all = append(
			all,
			FactoryHub{
				Serial: made["serial"].(string),
				HubID:  made["hub_id"].(string),
				Secret: made["secret"].(string),
			},
		)
	}
	return all
}

// Key creates an API key for an organization. Without scopes the key has all of them.
func (s *Service) Key(org string, scopes ...string) (id, key string) {
	s.t.Helper()
	which := []string{"--all-scopes"}
	if len(scopes) > 0 {
		which = []string{"--scope", strings.Join(scopes, ",")}
	}
	made := s.CLI(append([]string{"key", "create", "--org", org}, which...)...)[0]
	return made["key_id"].(string), made["key"].(string)
}

// CLI runs a command of the binary against the service with --json and returns the objects it
// printed.
func (s *Service) CLI(args ...string) []map[string]any {
	s.t.Helper()
	out, stderr, code := RunBinary(s.t, s.commandLine(args)...)
	if code != 0 {
		s.t.Fatalf("hubcloud %s: got exit code %d, want 0: %s", strings.Join(args, " "), code, stderr)
	}
	var objects []map[string]any
	lines := bufio.NewScanner(strings.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		object := map[string]any{}
		if err := json.Unmarshal(lines.Bytes(), &object); err != nil {
			s.t.Fatalf("hubcloud %s printed %q: %v", strings.Join(args, " "), lines.Text(), err)
		}
		objects = append(objects, object)
	}
	return objects
}

// commandLine inserts --data-dir and --json between the command's words and its flags.
func (s *Service) commandLine(args []string) []string {
	line := append([]string{}, args[:min(2, len(args))]...)
	line = append(line, "--data-dir", s.Dir, "--json")
	return append(line, args[min(2, len(args)):]...)
}

// RunBinary runs the binary and returns its output and exit code.
func RunBinary(t testing.TB, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, Binary(t), args...)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), command.ProcessState.ExitCode()
}

// tail keeps the last bytes that a process printed.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 256 << 10

var _ io.Writer = (*tail)(nil)

func (l *tail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	if over := len(l.text) - tailBytes; over > 0 {
		l.text = append(l.text[:0], l.text[over:]...)
	}
	return len(p), nil
}

// without returns the lines that do not contain text.
func (l *tail) without(text string) string {
	lines := strings.SplitAfter(l.String(), "\n")
	return strings.Join(
		slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, text) }),
		"",
	)
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

// FindInFiles searches the files of the service's data directory for a text and returns the path of
// the first match, or "". The folders in but are skipped; they are relative to the data directory.
func (s *Service) FindInFiles(text string, but ...string) string {
	s.t.Helper()
	found := ""
	err := filepath.WalkDir(s.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || found != "" {
			return nil // a running service creates and removes files
		}
		if entry.IsDir() {
			if relative, err := filepath.Rel(s.Dir, path); err == nil &&
				slices.Contains(but, relative) {
				return filepath.SkipDir
			}
			return nil
		}
		content, err := os.ReadFile(path)
		if entry.Type().IsRegular() && err == nil && bytes.Contains(content, []byte(text)) {
			found = path
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}
