package bench

import (
	"fmt"
	"os"
	"time"

	"hubcloud/test/harness"
)

type logsSize struct {
	logs, connected int
	settle          time.Duration
}

// measureLogs measures a service with very many hub logs. The limits are fixed figures.
func measureLogs(b *bench) {
	n := size(b, logsSize{*logsFlag, max(1, *logsFlag/20), 30 * time.Second}, logsSize{4, 2, 0})
	s := startService(b, "--log-level", "warn", "--shards", "64")
	first := s.senders(1)
	s.restart()
	empty := b.memory(s.process)
	hubs := append(s.senders(n.logs-1).hubs, first.hubs...)
	s.Stop()
	began := time.Now()
	s.Begin()
	start := row{
		Measure: fmt.Sprintf("start with %d hub logs", n.logs), Unit: "s",
		Values: []float64{time.Since(began).Seconds()},
	}
	s.process.pid = s.PID()
	started := s.files(b)
	harness.Elapse(n.settle)
	without := b.memory(s.process)
	connected := hubs[:n.connected]
	s.each(connected, first.connect)
	s.each(connected, func(h *hub) error { return h.emit(1, 1) })
	defer keep(b, connected)()
	emitted := s.files(b)
	harness.Elapse(n.settle)
	all := b.memory(s.process)
	b.heap(s.process, "logs")
	memory := row{
		Measure: "memory of a log", Unit: "KB",
		Values: []float64{(all - empty) / float64(n.logs) / 1e3}, Difference: true,
	}
	memory = memory.against(60, atMost(1))
	memory.Note = fmt.Sprintf(
		"%d logs in 64 shards; %s MB without any, %s MB with all, %s MB with %d hubs connected; "+
			"open files: %d after the start, %d after an event of each connected hub, %d later",
		n.logs, figure(empty/1e6), figure(without/1e6), figure(all/1e6), n.connected, started,
		emitted, s.files(b),
	)
	b.report.add(memory, start.against(40, atMost(1)))
}

// files returns the number of files that the process has open.
func (p process) files(b *bench) int {
	b.Helper()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.pid))
	harness.Must(b, err)
	return len(open)
}
