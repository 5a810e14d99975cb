package commands

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/hubbridge/protocol"
	"hubcloud/streams/telemetry"
)

// outcomeAccepted is the outcome of a command without an error.
const outcomeAccepted = "accepted"

type metrics struct {
	commands         *prometheus.CounterVec
	duration         prometheus.Histogram
	underWay         prometheus.Gauge
	repeated, shared prometheus.Counter
}

// newMetrics returns the metrics, registered with r unless r is nil.
func newMetrics(r prometheus.Registerer) *metrics {
	metric := telemetry.NewMetrics(r, "hubbridge")
	outcomes := append(telemetry.Values([]domain.Code{
		domain.CodeIdempotencyConflict, domain.CodeHubOffline, domain.CodeHubTimeout, domain.CodeHubError,
		domain.CodeHubUnavailable, domain.CodeNotFound, domain.CodeInvalidRequest, domain.CodeCommandRefused,
		domain.CodeRateLimited, domain.CodeServiceUnavailable, domain.CodeInternal,
	}), outcomeAccepted, domain.OutcomeCanceled)
	return &metrics{
		commands: metric.Counters("commands_total", "Commands by outcome: accepted, canceled, or the type of the "+
			"error. A rise of hub_timeout or hub_error means hubs that hang; of command_refused, devices that do "+
			"not accept their commands.", "outcome", outcomes...),
		// From a hub beside the broker to one that uses its whole timeout after a call at
		// another replica has done so too.
		duration: metric.Histogram("command_duration_seconds", "Seconds from a command to its answer: reserve the "+
			"key and store the record at the same time, call the hub, store the answer.",
			append(telemetry.LatencyBuckets(.001, 10), 20, 30)),
		underWay: metric.Gauge("commands_under_way", "Commands in flight to hubs. A rise at an unchanged rate of "+
			"commands means hubs that do not answer."),
		repeated: metric.Counter("commands_repeated_total", "Commands answered with the answer stored under their "+
			"idempotency key."),
		shared: metric.Counter("commands_shared_total", "Commands that shared the answer of a concurrent "+
			"duplicate."),
	}
}

func (m *metrics) observe(outcome string, took time.Duration) {
	m.commands.WithLabelValues(outcome).Inc()
	m.duration.Observe(took.Seconds())
}

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
