package telemetry

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestMetrics checks the names of metrics, and that the series of known labels exist from the start.
func TestMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	metric := NewMetrics(registry, "test")
	metric.Counters("requests_total", "Requests.", "kind", "read", "write")
	registry.MustRegister(NewCollector("test", func(gauge, _ Sample) { gauge("up", "Up.", 1) }))
	n, err := testutil.GatherAndCount(registry, "hubcloud_test_requests_total", "hubcloud_test_up")
	if err != nil || n != 3 {
		t.Errorf("%d series, %v; want 3", n, err)
	}
}
