package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hubcloud/test/harness"
)

// process is a running server whose CPU and memory are measured. Its admin address has the
// runtime's profiles.
type process struct {
	pid   int
	admin string
}

// cpu returns the scheduler's sum of the run time of the process's threads. Go programs keep their
// threads.
func (p process) cpu(t testing.TB) time.Duration {
	t.Helper()
	sum := cpuOf(t, []int{p.pid})
	if sum == 0 {
		t.Fatalf("CPU of process %d: no threads", p.pid)
	}
	return sum
}

// cpuOf is cpu of all of the processes that have not ended.
func cpuOf(t testing.TB, pids []int) (sum time.Duration) {
	t.Helper()
	for _, pid := range pids {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		harness.Must(t, err)
		for _, task := range tasks {
			text, err := os.ReadFile(task)
			if err != nil {
				continue // the thread has ended
			}
			ran, _, _ := strings.Cut(string(text), " ")
			ns, err := strconv.ParseInt(ran, 10, 64)
			if err != nil {
				t.Fatalf("%s: %v", task, err)
			}
			sum += time.Duration(ns)
		}
	}
	return sum
}

// busyShare returns the share of the machine's processors that is in use before a measurement.
func busyShare(t testing.TB) float64 {
	t.Helper()
	before, idleBefore := processors(t)
	harness.Elapse(time.Second)
	after, idleAfter := processors(t)
	return 1 - (idleAfter-idleBefore)/(after-before)
}

// processors returns the total and the idle time of all processors since the machine started, in
// ticks. Waiting for a disk counts as idle.
func processors(t testing.TB) (all, idle float64) {
	t.Helper()
	line, _, _ := strings.Cut(string(read(t, "/proc/stat")), "\n")
	for i, word := range strings.Fields(line)[1:] {
		ticks, err := strconv.ParseFloat(word, 64)
		if err != nil {
			t.Fatalf("/proc/stat: %q", line)
		}
		all += ticks
		if i == 3 || i == 4 {
			idle += ticks
		}
	}
	return all, idle
}

// memory returns the resident size of a process, less memory that the runtime holds free, once
// repeated garbage collections no longer change it.
func (b *bench) memory(p process) float64 {
	b.Helper()
	const tries, steady = 30, 3
	var sizes []float64
	for range size(b, tries, steady) {
		sizes = append(sizes, p.resident(b))
		if n := len(sizes); n >= steady {
			last := sizes[n-steady:]
			if low, high := slices.Min(last), slices.Max(last); high-low < 0.005*high {
				return median(last)
			}
		}
		b.rest()
	}
	return median(sizes[len(sizes)-steady:])
}

func (p process) resident(t testing.TB) float64 {
	t.Helper()
	// The second collection frees objects with finalizers and empties pools.
	p.get(t, "/debug/pprof/heap?gc=1")
	heap := string(p.get(t, "/debug/pprof/heap?gc=1&debug=1"))
	rss := field(t, string(read(t, fmt.Sprintf("/proc/%d/smaps_rollup", p.pid))), "Rss:") * 1024
	return rss - (field(t, heap, "# HeapIdle =") - field(t, heap, "# HeapReleased ="))
}

// field returns the number that follows a name.
func field(t testing.TB, text, name string) float64 {
	t.Helper()
	_, rest, ok := strings.Cut(text, name)
	words := strings.Fields(rest)
	if !ok || len(words) == 0 {
		t.Fatalf("%q not found in\n%.2000s", name, text)
	}
	n, err := strconv.ParseFloat(words[0], 64)
	if err != nil {
		t.Fatalf("%s %v", name, err)
	}
	return n
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	harness.Must(t, err)
	return text
}

func (p process) get(t testing.TB, path string) []byte {
	t.Helper()
	body, err := p.fetch(path)
	harness.Must(t, err)
	return body
}

func (p process) fetch(path string) ([]byte, error) {
	response, err := http.Get("http://" + p.admin + path)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %d %.500s", path, response.StatusCode, body)
	}
	return body, err
}

// roleVariable makes the test binary run as a bare server, which configVariable configures.
const (
	roleVariable   = "HUBCLOUD_BENCH_ROLE"
	configVariable = "HUBCLOUD_BENCH_CONFIG"
)

// bare is a bare server: a process of this test binary in one of its roles.
type bare struct {
	process
	t       testing.TB
	command *exec.Cmd
	stdin   io.WriteCloser
	stderr  *bytes.Buffer
	// started is the time from the start of the process until it was ready.
	started time.Duration
	ready   bareReady
}

// bareReady is the line that a bare server prints once it is ready.
type bareReady struct {
	// Control is the address for commands and profiles. HTTP, Feed and MQTT are the measured
	// addresses of roles that have them.
	Control, HTTP, Feed, MQTT, NATS string
}

// startBare starts a bare server, which is stopped when the test ends.
func startBare(t testing.TB, role string, config any) *bare {
	t.Helper()
	text, err := json.Marshal(config)
	harness.Must(t, err)
	b := &bare{t: t, command: exec.Command(os.Args[0]), stderr: &bytes.Buffer{}}
	b.command.Env = append(os.Environ(), roleVariable+"="+role, configVariable+"="+string(text))
	b.command.Stderr = b.stderr
	b.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, err := b.command.StdoutPipe()
	harness.Must(t, err)
	if b.stdin, err = b.command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	harness.Must(t, b.command.Start())
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	b.started = time.Since(began)
	if err == nil {
		err = json.Unmarshal(line, &b.ready)
	}
	if err != nil {
		b.command.Process.Kill()
		b.command.Wait()
		t.Fatalf("start bare %s: %v\n%s", role, err, b.stderr)
	}
	b.process = process{pid: b.command.Process.Pid, admin: b.ready.Control}
	t.Cleanup(b.stop)
	return b
}

// stop ends the process. It may be called twice.
func (b *bare) stop() {
	b.stdin.Close() // ends the process
	if err := b.command.Wait(); err != nil && b.command.ProcessState != nil &&
		!b.command.ProcessState.Success() {
		b.t.Logf("a bare server ended: %v\n%s", err, b.stderr)
	}
}

// do sends the bare server a command and waits for its response.
func (b *bare) do(command string, body, answer any) {
	b.t.Helper()
	text, err := json.Marshal(body)
	harness.Must(b.t, err)
	response, err := http.Post(
		"http://"+b.ready.Control+command, "application/json", bytes.NewReader(text),
	)
	if err != nil {
		b.t.Fatalf("%s: %v\n%s", command, err, b.stderr)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		b.t.Fatalf("%s: %d %s %v", command, response.StatusCode, content, err)
	}
	if answer != nil {
		if err := json.Unmarshal(content, answer); err != nil {
			b.t.Fatalf("%s: %v in %s", command, err, content)
		}
	}
}
