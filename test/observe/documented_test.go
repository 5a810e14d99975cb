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

var update = flag.Bool("update", false, "write deploy/docs/metrics.md anew")

const metricsHead = `# Metrics

Each process serves its own at ` + "`http://ADMIN/metrics`" + ` (` + "`--admin`" + `, on loopback unless told otherwise), in the format of Prometheus. Durations are in
seconds and sizes in bytes; counters begin at 0 with the process; labels have few values and never the id of a hub, a key or an organization. What only
one replica does, others do not tell: how far read models are is told by the one with ` + "`hubcloud_projections_leading`" + ` 1, hubs' events by
whoever has the lease of their shard, the broker's own figures by a process that runs one. Beside these there are those of the Go runtime (` + "`go_…`" + `) and of the
process (` + "`process_…`" + `).

This table is made of what a service says of itself: ` + "`go test ./test/observe -run TestStory -update`" + ` writes it anew.

| metric | kind | labels | what it says |
|---|---|---|---|
`

// documented holds deploy/docs/metrics.md to the metrics that there are.
func (s *story) documented(t *testing.T) {
	text := metricsHead + metricsTable(s.after)
	path := filepath.Join("..", "..", "deploy", "docs", "metrics.md")
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(kept) == text {
		return
	}
	is, was := strings.Split(text, "\n"), strings.Split(string(kept), "\n")
	for _, line := range is {
		if !slices.Contains(was, line) {
			t.Errorf("not in deploy/docs/metrics.md: %s", line)
		}
	}
	for _, line := range was {
		if !slices.Contains(is, line) {
			t.Errorf("in deploy/docs/metrics.md, and not true: %s", line)
		}
	}
	t.Error("write it anew with -update")
}

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
			&table,
			"| `%s` | %s | %s | %s |\n",
			name,
			strings.ToLower(family.GetType().String()),
			strings.Join(slices.Sorted(maps.Keys(labels)), ", "),
			strings.ReplaceAll(family.GetHelp(), "|", "\\|"),
		)
	}
	return table.String()
}
