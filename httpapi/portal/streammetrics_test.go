package portal

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// TestMetrics checks the counts of open streams, events and gaps.
func TestMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	r := newTestLive(t, Config{Metrics: registry})
	value := func(name string) float64 {
		t.Helper()
		return streamstest.MetricValue(t, registry, "hubcloud_live_"+name)
	}
	p := r.open(streamRequest{})
	p.await("hub.portal_states", &struct{}{})
	r.append(hubA, "channel.observed", 1, levels(1, 7)...)
	p.values(map[domain.HubID]int{hubA: 7})
	streams, events := value("streams"), value("stream_events_total")
	gaps := value("gaps_total")
	if streams != 1 || events != 7 || gaps != 0 {
		t.Errorf("got %v streams, %v events, %v gaps; want 1, 7, 0", streams, events, gaps)
	}
	p.cancel()
	streamstest.Eventually(t, "the stream that ended is no longer counted as open", func() bool {
		return value("streams") == 0
	})
	r.append(hubA, "channel.observed", 1, levels(8, 8)...)
	r.reset(hubA)
	p = r.open(streamRequest{Position: p.position})
	p.await("feed.gap", &struct{}{})
	r.open(streamRequest{Position: "x"}).cancel()
	if gaps = value("gaps_total"); gaps != 2 {
		t.Errorf("after a reset and an invalid position: got %v gaps, want 2", gaps)
	}
	p.cancel()
}
