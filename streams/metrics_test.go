package streams_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hubcloud/streams"
	"hubcloud/streams/streamstest"
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
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			if family.GetName() == "hubcloud_streams_"+name {
				return family.GetMetric()[0].GetCounter().GetValue() + family.GetMetric()[0].GetGauge().GetValue()
			}
		}
		t.Fatalf("no metric %s", name)
		return 0
	}
	eventually := func(what string, is func() bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("waited in vain until " + what)
			}
		}
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
	eventually("all are down", func() bool { return value("connections_down") == all })
	broker.Start(t)
	eventually("all are back", func() bool { return value("connections_up") == all && value("reconnects_total") == all })
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}
}
