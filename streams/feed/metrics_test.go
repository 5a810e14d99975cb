package feed

import (
	"context"
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hubcloud/domain"
	"hubcloud/streams/journal"
	"hubcloud/streams/streamstest"
)

// TestMetrics checks the counters of appends and pages. Each counter begins with 0.
func TestMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	f := start(t, Config{Metrics: registry})
	m := f.metrics
	value := func(c prometheus.Metric) float64 { return valueOf(t, c) }
	const failures = "hubcloud_feed_append_failures_total"
	if series, err := testutil.GatherAndCount(registry, failures); err != nil || series != 2 {
		t.Errorf("%d series of %s before any append (%v), want 2", series, failures, err)
	}
	last := f.append(hubA, 0, 1, 3)
	f.command(hubA)
	if _, err := f.Append(t.Context(), hubA, last-1, []journal.Record{
		record(hubA, domain.NewEpochID(0xa), 9),
	}); !errors.Is(err, ErrConflict) {
		t.Fatalf("Append with an old expectation: %v, want ErrConflict", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Append(ended, hubA, last, []journal.Record{
		record(hubA, domain.NewEpochID(0xa), 9),
	}); err == nil {
		t.Fatal("Append with a canceled context: nil, want an error")
	}
	f.awaitView(hubA, last)
	f.page(hubA, "", 2)
	f.page(hubA, "", 2)
	for what, pair := range map[string][2]float64{
		"messages appended": {value(m.appended), 4}, "conflicts": {value(m.conflicts), 1},
		"failures": {value(m.failures), 1},
		"pages":    {value(m.pages), 2}, "tails": {value(m.tails), 1},
		"readers": {value(m.readers), 0}, "overruns": {value(m.overruns), 0},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %v, want %v", what, pair[0], pair[1])
		}
	}
	if appends := testutil.CollectAndCount(m.appendTime); appends != 1 {
		t.Errorf("%d histograms of appends, want 1", appends)
	}
	if value(m.directGets) == 0 || value(m.read) == 0 || value(m.cacheMisses) == 0 ||
		value(m.cacheBytes) == 0 ||
		value(m.cacheHits) == 0 {
		t.Errorf(
			"gets %v, read %v, misses %v, hits %v, bytes %v; want all above 0", value(m.directGets),
			value(m.read), value(m.cacheMisses), value(m.cacheHits), value(m.cacheBytes),
		)
	}
	streamstest.LintMetrics(t, registry)
}
