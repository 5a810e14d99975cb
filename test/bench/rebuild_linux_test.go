package bench

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"hubcloud/streams"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
	"hubcloud/test/population"
)

type rebuildSize struct {
	events, orgs, rounds int
}

// measureRebuild compares the rows per second of `hubcloud projections rebuild` with those of a
// bare COPY of the same rows.
func measureRebuild(b *bench) {
	n := size(b, rebuildSize{200_000, 500, 3}, rebuildSize{300, 2, 1})
	s := startService(b, "--log-level", "warn")
	made := s.populate(
		population.Config{Events: n.events, Orgs: n.orgs, Environment: "dev", Seed: 1},
	)
	database := startBare(b, roleDatabase, databaseConfig{URL: s.databaseURL(), Readers: 1})
	r := row{Measure: "rebuild", Unit: "rows/s", Aim: atLeast(0.4)}
	var rows int64
	var plain []float64
	for range n.rounds {
		var copied, bare copyResult
		database.do("/copy", copyCommand{Keys: true}, &copied)
		database.do("/copy", copyCommand{}, &bare)
		took := s.rebuild()
		rows = copied.Rows
		r.Values = append(r.Values, float64(rows)/took.Seconds())
		r.Limits = append(r.Limits, float64(rows)/copied.Seconds)
		plain = append(plain, float64(bare.Rows)/bare.Seconds)
	}
	r.Note = fmt.Sprintf(
		"%d rows of %d events, from the start of the command to its end, the switch included; "+
			"the limit is a COPY of the same rows "+
			"from memory into tables of the same definition, with their keys and indexes "+
			"(without any: %s rows/s)",
		rows,
		made.Events,
		figure(median(plain)),
	)
	b.report.add(r)
}

// populate fills the service's directory and waits until the read models are up to date.
func (s *service) populate(cfg population.Config) population.Population {
	s.t.Helper()
	credentials, err := streams.ReadCredentials(filepath.Join(s.Dir, "nats-credentials.json"))
	if err != nil {
		s.t.Fatal(err)
	}
	conns, err := streams.Connect(s.t.Context(), credentials)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conns.Close()
	made, err := population.Write(s.t.Context(), conns, cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	streamstest.EventuallyWithin(
		s.t,
		5*time.Minute,
		"the read models have what was written",
		func() bool {
			for _, line := range s.CLI("projections", "status") {
				if line["lag"].(float64) != 0 {
					return false
				}
			}
			return true
		},
	)
	return made
}

// rebuild rebuilds the service's read models, drops the old ones, and returns the time of the
// rebuild alone.
func (s *service) rebuild() time.Duration {
	s.t.Helper()
	began := time.Now()
	rebuild := exec.Command(harness.Binary(s.t), "projections", "rebuild", "--data-dir", s.Dir)
	if out, err := rebuild.CombinedOutput(); err != nil {
		s.t.Fatalf("rebuild: %v\n%s", err, out)
	}
	took := time.Since(began)
	s.CLI("projections", "drop")
	return took
}
