package rpc

import (
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/hubbridge/protocol"
	"hubcloud/streams/telemetry"
)

// outcomeOK is the outcome of a call without an error.
const outcomeOK = "ok"

// newLatency returns the histogram of calls by method and outcome, registered with r unless r is
// nil. The outcomes that alerts use exist from the start, so that their first call shows in a rate.
// The others would be mostly empty series.
func newLatency(r prometheus.Registerer) *prometheus.HistogramVec {
	metric := telemetry.NewMetrics(r, "hubbridge")
	// From a hub beside the broker to the longest timeout.
	latency := metric.Histograms("call_duration_seconds", "Seconds that requests to hubs took, by method and "+
		"outcome (ok, canceled, or the type of the error). A rise of hub_timeout or hub_error means hubs that "+
		"hang; of hub_offline, consumers that call disconnected hubs.",
		telemetry.LatencyBuckets(.0005, 10), "method", "outcome")
	for _, method := range protocol.Methods() {
		for _, outcome := range []string{
			outcomeOK, string(domain.CodeHubOffline), string(domain.CodeHubTimeout),
			string(domain.CodeHubError),
		} {
			latency.WithLabelValues(method, outcome)
		}
	}
	return latency
}
