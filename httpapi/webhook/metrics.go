package webhook

import (
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/streams/telemetry"
)

// The values of the label outcome.
const (
	outcomeDelivered  = "delivered"
	outcomeRejected   = "rejected"
	outcomeUnanswered = "unanswered"
)

type metrics struct {
	requests *prometheus.CounterVec
	duration prometheus.Histogram
	events   prometheus.Counter
	gaps     prometheus.Counter
	disabled prometheus.Counter
	failing  prometheus.Gauge
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	metric := telemetry.NewMetrics(registerer, "webhook")
	return &metrics{
		requests: metric.Counters("requests_total", "Requests to webhooks, by outcome: delivered, rejected or "+
			"unanswered.", "outcome", outcomeDelivered, outcomeRejected, outcomeUnanswered),
		duration: metric.Histogram("request_duration_seconds", "How long receivers of webhooks took to answer.",
			[]float64{.01, .03, .1, .3, 1, 3, 10, 15}),
		events:   metric.Counter("events_total", "Events that receivers of webhooks have taken."),
		gaps:     metric.Counter("gaps_total", "How often events of a webhook expired before its receiver took them."),
		disabled: metric.Counter("disabled_total", "Webhooks that the service has disabled because they failed."),
		failing:  metric.Gauge("failing", "Webhooks that this replica delivers for and whose last request failed."),
	}
}
