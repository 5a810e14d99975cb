package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

type startSize struct {
	hubs, rounds int
}

// measureStart measures the time from the start of the process until it is ready.
func measureStart(b *bench) {
	n := size(b, startSize{5000, 3}, startSize{4, 1})
	s := startService(b, "--log-level", "warn")
	const some = 500 // connected at a time
	for made := 0; made < n.hubs; {
		count := min(some, n.hubs-made)
		hubs := s.hubs(count)
		s.each(hubs, func(h *hub) error { return h.emit(1, 5) })
		s.each(hubs, func(h *hub) error { h.disconnect(); return nil })
		made += count
	}
	s.Stop()
	copied := filepath.Join(b.TempDir(), "nats")
	if err := os.CopyFS(copied, os.DirFS(filepath.Join(s.Dir, "nats"))); err != nil {
		b.Fatal(err)
	}
	r := row{Measure: fmt.Sprintf("start with %d hub logs", n.hubs), Unit: "s", Aim: atMost(1.3)}
	ca := newAuthority(b)
	ca.broker(copied, defaultShards).stop() // the files are in the page cache for both
	for range n.rounds {
		began := time.Now()
		s.Begin()
		r.Values = append(r.Values, time.Since(began).Seconds())
		s.Stop()
		broker := ca.broker(copied, defaultShards)
		r.Limits = append(r.Limits, broker.started.Seconds())
		broker.stop()
	}
	r.Note = "from the start of the process, after an orderly stop; the service's database and " +
		"projections are up to date then too"
	b.report.add(r)
}
