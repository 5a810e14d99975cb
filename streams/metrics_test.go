package streams_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/streams"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/telemetry/telemetrytest"
)

// TestConnectionMetrics: a broker that goes away and comes back shows.
func TestConnectionMetrics(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	conns := broker.Connect(t)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(streams.NewCollector(conns))
	value := func(name string) float64 {
		t.Helper()
		return telemetrytest.Value(t, registry, "hubcloud_streams_"+name)
	}
	all := float64(2 + len(conns.Shards))
	if up, down := value("connections_up"), value("connections_down"); up != all || down != 0 {
		t.Errorf("%v up, %v down, of %v", up, down, all)
	}
	before := value("sent_bytes_total")
	if err := conns.Cloud.Publish("anything", make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if sent := value("sent_bytes_total") - before; sent < 1000 {
		t.Errorf("%v bytes sent", sent)
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
	telemetrytest.Lint(t, registry)
}
