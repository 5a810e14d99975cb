package bench

import (
	"flag"
	"fmt"
	"math"
	"os"
	"testing"

	"hubcloud/test/harness"
)

var (
	fullFlag = flag.Bool("bench.report", false, "measure at full size and print the table")
	jsonFlag = flag.String(
		"bench.json", "", "append the results to this file, one JSON object a line",
	)
	profileFlag = flag.String(
		"bench.profile", "", "save CPU and memory profiles of what is measured in this folder",
	)
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		if err := runRole(role); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	harness.RemoveBinary()
	os.Exit(code)
}

// bench is one measurement under way.
type bench struct {
	testing.TB
	report *report
	// full is false when it is only to be shown that the measurement runs.
	full bool
}

// size returns the size of a measurement.
func size[S any](b *bench, full, tiny S) S {
	if b.full {
		return full
	}
	return tiny
}

// measures are the lines of the table, in its order.
var measures = []struct {
	name string
	run  func(*bench)
}{
	{"ingest", measureIngest},
	{"latency", measureLatency},
	{"pages", measurePages},
	{"fanout-one-hub", measureFanOutOneHub},
	{"fanout-many-hubs", measureFanOutManyHubs},
	{"tap", measureTap},
	{"resume", measureResume},
	{"hub-memory", measureHubMemory},
	{"reader-memory", measureReaderMemory},
	{"start", measureStart},
	{"calls", measureCalls},
	{"lists", measureLists},
	{"rebuild", measureRebuild},
}

// TestBench measures everything, one after the other, and prints the table. One measure is picked
// with -run TestBench/ingest.
func TestBench(t *testing.T) {
	if !*fullFlag {
		t.Skip("measures only with -bench.report (`make bench`)")
	}
	results := &report{}
	for _, m := range measures {
		t.Run(m.name, func(t *testing.T) {
			results.unrest = append(results.unrest, unrest(t))
			m.run(&bench{TB: t, report: results, full: true})
		})
	}
	fmt.Println()
	if err := results.table(os.Stdout); err != nil {
		t.Error(err)
	}
	if *jsonFlag != "" {
		if err := results.write(*jsonFlag); err != nil {
			t.Error(err)
		}
	}
}

// TestMeasures runs every measurement on tiny numbers: they still work, and count what they should.
func TestMeasures(t *testing.T) {
	if *fullFlag {
		t.Skip("the full measurement runs instead")
	}
	t.Parallel()
	for _, m := range measures {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			results := &report{}
			m.run(&bench{TB: t, report: results})
			for _, row := range results.rows {
				// On tiny numbers a difference may come out below nothing.
				if v, l := median(row.Values), median(row.Limits); v == 0 || l == 0 ||
					math.IsNaN(v) ||
					math.IsNaN(l) {
					t.Errorf("%s: value %v, limit %v", row.Measure, row.Values, row.Limits)
				}
			}
		})
	}
}
