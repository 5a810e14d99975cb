package observe

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hubcloud/test/harness"
)

var update = flag.Bool("update", false, "write deploy/docs/metrics.md")

const metricsHead = `# Metrics

Each process serves its metrics in the Prometheus format at ` + "`http://ADMIN/metrics`" + ` (` + "`--admin`" + `, on loopback by default). Durations are in seconds,
sizes in bytes. Counters start at 0 with the process. Labels have few values, and never the id of a hub, a key or an organization.

Some metrics come from one replica only: read model lag from the replica with ` + "`hubcloud_projections_leading`" + ` 1, hub events from the replica that holds
the lease of the hub's shard, broker metrics from a process with an embedded broker. The Go runtime (` + "`go_…`" + `) and process (` + "`process_…`" + `) metrics are
also exported.

` + "`go test ./test/observe -run TestStory -update`" + ` generates this table from a running service.

| metric | type | labels | meaning |
|---|---|---|---|
`

// documented compares deploy/docs/metrics.md with the metrics of the service.
func (s *story) documented(t *testing.T) {
	text := metricsHead + metricsTable(s.after)
	path := filepath.Join("..", "..", "deploy", "docs", "metrics.md")
	if *update {
		harness.Must(t, os.WriteFile(path, []byte(text), 0o644))
	}
	kept, err := os.ReadFile(path)
	harness.Must(t, err)
	if string(kept) == text {
		return
	}
	got, want := strings.Split(text, "\n"), strings.Split(string(kept), "\n")
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("not in deploy/docs/metrics.md: %s", line)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("wrong in deploy/docs/metrics.md: %s", line)
		}
	}
	t.Error("deploy/docs/metrics.md differs: run the test with -update")
}

// shares compares the resources that organizations share with their table in deploy/docs/limits.md.
func (s *story) shares(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "docs", "limits.md"))
	harness.Must(t, err)
	_, table, _ := strings.Cut(string(text), "\n## Shares\n")
	rows := map[string]bool{}
	for line := range strings.Lines(table) {
		if name, found := strings.CutPrefix(line, "| `"); found {
			name, _, _ = strings.Cut(name, "`")
			rows[name] = true
		}
	}
	for _, metric := range s.after["hubcloud_shares_held_back_total"].GetMetric() {
		name := metric.GetLabel()[0].GetValue()
		if !rows[name] {
			t.Errorf("not in the table of deploy/docs/limits.md: %s", name)
		}
		delete(rows, name)
	}
	for name := range rows {
		t.Errorf("wrong in the table of deploy/docs/limits.md: %s", name)
	}
}

// metricsTable returns the rows of the table of metrics.
func metricsTable(metrics harness.Metrics) string {
	var table strings.Builder
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		if !strings.HasPrefix(name, "hubcloud_") {
			continue
		}
		family := metrics[name]
		labels := map[string]bool{}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				labels["`"+label.GetName()+"`"] = true
			}
		}
		fmt.Fprintf(
			&table, "| `%s` | %s | %s | %s |\n", name, strings.ToLower(family.GetType().String()),
			strings.Join(slices.Sorted(maps.Keys(labels)), ", "),
			strings.ReplaceAll(family.GetHelp(), "|", "\\|"),
		)
	}
	return table.String()
}
