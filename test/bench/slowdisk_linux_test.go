package bench

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"hubcloud/test/harness"
)

type slowDiskSize struct {
	hubs, rounds int
	during       time.Duration
}

// measureSlowDisk measures hubs that each have one event in flight, with a disk that takes 5 ms for
// a sync and has one sync at a time. The limits are fixed figures: stored on its own, each event
// would wait for its own sync, so there would be 200 events/s.
func measureSlowDisk(b *bench) {
	n := size(
		b, slowDiskSize{1000, 3, 5 * time.Second}, slowDiskSize{2, 1, 100 * time.Millisecond},
	)
	changed := slowSync(b)
	program := ""
	if b.full { // another build of everything takes a minute
		program = harness.BuildWith(b, changed)
	}
	s := startProgram(b, program, "--log-level", "warn")
	own := s.senders(n.hubs)
	s.each(own.hubs, own.connect)
	s.each(own.hubs, func(h *hub) error { return h.emit(1, 1) })
	rate := row{Measure: "slow disk, single events", Unit: "events/s"}
	p99 := row{Measure: "slow disk, p99 until the ack", Unit: "ms"}
	for round := range n.rounds {
		done := b.profile(own.process, "slow disk", n.during, round == 0)
		l := own.oneInFlight(b, own.hubs, n.during)
		done()
		rate.Values = append(rate.Values, l.rate)
		p99.Values = append(p99.Values, percentile(l.latencies, 0.99)/1e6)
	}
	rate, p99 = rate.against(10_000, atLeast(1)), p99.against(200, atMost(1))
	rate.Note = fmt.Sprintf("%d hubs, each with one event in flight", n.hubs)
	b.report.add(rate, p99)
}

// slowSync returns the source file of os.File.Sync, with a Sync that takes 5 ms longer, one at a
// time.
func slowSync(b *bench) map[string][]byte {
	b.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Fatal(err)
	}
	name := filepath.Join(strings.TrimSpace(string(root)), "src", "os", "file_posix.go")
	source := read(b, name)
	for _, change := range [][2]string{
		{"import (\n", "import (\n\t\"sync\"\n"},
		{
			"\tif e := f.pfd.Fsync(); e != nil {\n",
			"\toneSync.Lock()\n\tdefer oneSync.Unlock()\n\ttime.Sleep(5 * time.Millisecond)\n" +
				"\tif e := f.pfd.Fsync(); e != nil {\n",
		},
		{
			"\n// Close closes the [File], rendering",
			"\nvar oneSync sync.Mutex\n\n// Close closes the [File], rendering",
		},
	} {
		if bytes.Count(source, []byte(change[0])) != 1 {
			b.Fatalf("%s: %q is not there once", name, change[0])
		}
		source = bytes.Replace(source, []byte(change[0]), []byte(change[1]), 1)
	}
	return map[string][]byte{name: source}
}
