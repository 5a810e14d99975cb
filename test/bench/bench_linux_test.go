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

// measures are the measurements in the order of the table.
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

// TestBench runs all measurements, one after the other, and prints the table. Use
// -run TestBench/ingest for one.
func TestBench(t *testing.T) {
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

// TestMeasures runs every measurement with tiny sizes and checks that it returns values.
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
				// With tiny sizes a difference may be negative.
				if v, l := median(row.Values), median(row.Limits); v == 0 || l == 0 ||
					math.IsNaN(v) ||
					math.IsNaN(l) {
					t.Errorf("%s: value %v, limit %v", row.Measure, row.Values, row.Limits)
				}
			}
		})
	}
}
