package streams_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// TestConnectionMetrics checks the metrics while the broker stops and starts again.
func TestConnectionMetrics(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	conns := broker.Connect(t)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(streams.NewCollector(conns))
	value := func(name string) float64 {
		t.Helper()
		return streamstest.MetricValue(t, registry, "hubcloud_streams_"+name)
	}
	all := float64(2 + len(conns.Shards))
	if up, down := value("connections_up"), value("connections_down"); up != all || down != 0 {
		t.Errorf("connections: got %v up and %v down, want %v up", up, down, all)
	}
	before := value("sent_bytes_total")
	streamstest.Must(t, conns.Cloud.Publish("anything", make([]byte, 1000)))
	if sent := value("sent_bytes_total") - before; sent < 1000 {
		t.Errorf("bytes sent: got %v, want at least 1000", sent)
	}
	broker.Stop()
	streamstest.Eventually(
		t, "all connections are down", func() bool { return value("connections_down") == all },
	)
	broker.Start(t)
	streamstest.Eventually(
		t, "all connections are up again",
		func() bool { return value("connections_up") == all && value("reconnects_total") == all },
	)
}
