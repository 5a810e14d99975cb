package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// measureTap compares event streams beside a tap of all hubs with the same streams without it: a
// tap should not slow down readers of the API.
func measureTap(b *bench) {
	n := size(
		b, fanOutSize{hubs: 100, readers: 10, rate: 5, rounds: 7, during: 5 * time.Second},
		fanOutSize{hubs: 3, readers: 2, rate: 10, rounds: 1, during: 200 * time.Millisecond},
	)
	s := startService(b, "--log-level", "warn")
	hubs := s.hubs(n.hubs)
	s.each(hubs, func(h *hub) error { return h.emit(1, 1) })
	sends := make([]func() error, n.hubs)
	for i, h := range hubs {
		m := newEventsMessage(h, 1)
		sends[i] = func() error { return m.send(h) }
	}
	defer keep(b, hubs)()
	of := func(i int) (string, string) { return s.Service.HTTP, s.streamRequest(hubs[i], "") }

	cpu := row{Measure: "beside a tap, CPU a delivery", Unit: "µs", Aim: atMost(1.5)}
	p50 := row{Measure: "beside a tap, latency p50", Unit: "ms", Aim: atMost(1.2)}
	p99 := row{Measure: "beside a tap, latency p99", Unit: "ms", Aim: atMost(2)}
	var tapCPU []float64
	for round := range n.rounds {
		alone := runFanOut(b, n, sends, s.process, 0, of)
		tapping := startTap(b, s)
		done := b.profile(s.process, "tap", 2*n.during, round == 0)
		before := tapping.cpu(b)
		beside := runFanOut(b, n, sends, s.process, 0, of)
		tapCPU = append(tapCPU, float64(tapping.cpu(b)-before)/float64(n.events())/1e3)
		done()
		tapping.end()
		cpu.Values = append(cpu.Values, beside.total/1e3)
		cpu.Limits = append(cpu.Limits, alone.total/1e3)
		p50.Values = append(p50.Values, median(beside.latencies)/1e6)
		p50.Limits = append(p50.Limits, median(alone.latencies)/1e6)
		p99.Values = append(p99.Values, percentile(beside.latencies, 0.99)/1e6)
		p99.Limits = append(p99.Limits, percentile(alone.latencies, 0.99)/1e6)
	}
	cpu.Note = fmt.Sprintf(
		"%d hubs × %d readers × %d events/s, storing included; the tap's own process: %.1f µs an "+
			"event",
		n.hubs, n.readers, n.rate, median(tapCPU),
	)
	b.report.add(cpu, p50, p99)
}

// tapping is a running tap of all hubs.
type tapping struct {
	process
	b       *bench
	command *exec.Cmd
}

// startTap starts a tap from the end of the logs and waits for its first checkpoint.
func startTap(b *bench, s *service) *tapping {
	checkpoint := filepath.Join(b.TempDir(), "checkpoint")
	t := &tapping{
		b: b,
		command: exec.Command(
			harness.Binary(b), "tap", "--data-dir", s.Dir, "--follow", "--new",
			"--checkpoint", checkpoint, "--checkpoint-every", "100ms",
		),
	}
	t.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := t.command.Start(); err != nil {
		b.Fatal(err)
	}
	t.process = process{pid: t.command.Process.Pid}
	streamstest.EventuallyWithin(b, 20*time.Second, "the tap has begun", func() bool {
		_, err := os.Stat(checkpoint)
		return err == nil
	})
	return t
}

func (t *tapping) end() {
	if err := t.command.Process.Signal(os.Interrupt); err != nil {
		t.b.Fatal(err)
	}
	if err := t.command.Wait(); err != nil {
		t.b.Errorf("end of the tap: %v", err)
	}
}
