package commands

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"hubcloud/domain"
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
	metric := promauto.With(r)
	m := &metrics{
		commands: metric.NewCounterVec(prometheus.CounterOpts{
			Name: "hubcloud_hubbridge_commands_total",
			Help: "Commands by outcome: accepted, canceled, or the type of the error. A rise of " +
				"hub_timeout or hub_error means hubs that hang; of command_refused, devices that " +
				"do not accept their commands.",
		}, []string{"outcome"}),
		duration: metric.NewHistogram(prometheus.HistogramOpts{
			Name: "hubcloud_hubbridge_command_duration_seconds",
			Help: "Seconds from a command to its answer: reserve the key and store the record at " +
				"the same time, call the hub, store the answer.",
			// From a hub beside the broker to one that uses its whole timeout after a call at
			// another replica has done so too.
			Buckets: append(telemetry.LatencyBuckets(.001, 10), 20, 30),
		}),
		underWay: metric.NewGauge(prometheus.GaugeOpts{
			Name: "hubcloud_hubbridge_commands_under_way",
			Help: "Commands in flight to hubs. A rise at an unchanged rate of commands means " +
				"hubs that do not answer.",
		}),
		repeated: metric.NewCounter(prometheus.CounterOpts{
			Name: "hubcloud_hubbridge_commands_repeated_total",
			Help: "Commands answered with the answer stored under their idempotency key.",
		}),
		shared: metric.NewCounter(prometheus.CounterOpts{
			Name: "hubcloud_hubbridge_commands_shared_total",
			Help: "Commands that shared the answer of a concurrent duplicate.",
		}),
	}
	for _, outcome := range []string{
		outcomeAccepted, domain.OutcomeCanceled, string(domain.CodeIdempotencyConflict),
		string(domain.CodeHubOffline), string(domain.CodeHubTimeout),
		string(domain.CodeHubError), string(domain.CodeHubUnavailable),
		string(domain.CodeNotFound), string(domain.CodeInvalidRequest),
		string(domain.CodeCommandRefused), string(domain.CodeRateLimited),
		string(domain.CodeServiceUnavailable), string(domain.CodeInternal),
	} {
		m.commands.WithLabelValues(outcome)
	}
	return m
}

func (m *metrics) observe(outcome string, took time.Duration) {
	m.commands.WithLabelValues(outcome).Inc()
	m.duration.Observe(took.Seconds())
}
