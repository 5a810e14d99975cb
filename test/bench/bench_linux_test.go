package bench

import (
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"hubcloud/test/harness"
	"hubcloud/test/natscluster"
)

var (
	fullFlag    = flag.Bool("bench.report", false, "measure at full size and print the table")
	logsFlag    = flag.Int("bench.logs", 100_000, "hub logs of `make bench-logs`")
	largeFlag   = flag.Int("bench.cluster", 20_000, "hub logs of `make bench-cluster`")
	profileFlag = flag.String(
		"bench.profile", "", "save CPU and memory profiles of what is measured in this folder",
	)
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role == roleAttack {
		attackArgs()
	} else if role != "" {
		if err := runRole(role); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	natscluster.ServeIfRequested()
	harness.Main(m, 0)
}

// bench is a running measurement.
type bench struct {
	testing.TB
	report *report
	// full is false if the run only checks that the measurement works.
	full bool
}

// size returns full or tiny, depending on the run.
func size[S any](b *bench, full, tiny S) S {
	if b.full {
		return full
	}
	return tiny
}

// measure is a measurement.
type measure struct {
	name string
	run  func(*bench)
}

// measures are the measurements in the order of the table.
var measures = []measure{
	{"singles", measureSingles},
	{"paced", measurePaced},
	{"feed", measureFeed},
	{"hub-memory", measureHubMemory},
	{"reader-memory", measureReaderMemory},
	{"calls", measureCalls},
	{"states", measureStates},
	{"fairness", measureFairness},
	{"cluster", measureCluster},
}

// largeMeasures create so many hubs that each takes half an hour.
var largeMeasures = []measure{
	{"logs", measureLogs},
	{"cluster", measureLargeCluster},
}

// TestBench runs all measurements but the large ones, one after the other, and prints the table.
// Use -run TestBench/ingest for one.
func TestBench(t *testing.T) { measureAll(t, measures) }

// TestLargeBench runs the large measurements. Use -run TestLargeBench/logs for one.
func TestLargeBench(t *testing.T) { measureAll(t, largeMeasures) }

func measureAll(t *testing.T, measures []measure) {
	t.Helper()
	if !*fullFlag {
		t.Skip("measures only with -bench.report (`make bench`)")
	}
	results := &report{}
	for _, m := range measures {
		t.Run(m.name, func(t *testing.T) {
			results.busy = append(results.busy, busyShare(t))
			m.run(&bench{TB: t, report: results, full: true})
		})
	}
	fmt.Printf("\n%s", results.table())
}

// tried are the measurements that TestMeasures runs: together they have the parts of all.
var tried = []string{
	"singles", "paced", "feed", "reader-memory", "calls", "fairness",
}

// TestMeasures runs some measurements with tiny sizes and checks that they return values.
func TestMeasures(t *testing.T) {
	if *fullFlag {
		t.Skip("the full measurement runs instead")
	}
	t.Parallel()
	for _, m := range measures {
		if !slices.Contains(tried, m.name) {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			results := &report{}
			m.run(&bench{TB: t, report: results})
			for _, row := range results.rows {
				v, l := median(row.Values), median(row.Limits)
				if math.IsNaN(v) || math.IsNaN(l) || !row.Difference && (v == 0 || l == 0) {
					t.Errorf("%s: value %v, limit %v", row.Measure, row.Values, row.Limits)
				}
			}
		})
	}
}
