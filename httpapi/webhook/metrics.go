package webhook

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
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
	with := promauto.With(registerer)
	m := &metrics{
		requests: with.NewCounterVec(prometheus.CounterOpts{
			Name: "hubcloud_webhook_requests_total",
			Help: "Requests to webhooks, by outcome: delivered, rejected or unanswered.",
		}, []string{"outcome"}),
		duration: with.NewHistogram(prometheus.HistogramOpts{
			Name:    "hubcloud_webhook_request_duration_seconds",
			Help:    "How long receivers of webhooks took to answer.",
			Buckets: []float64{.01, .03, .1, .3, 1, 3, 10, 15},
		}),
		events: with.NewCounter(prometheus.CounterOpts{
			Name: "hubcloud_webhook_events_total", Help: "Events that receivers of webhooks have taken.",
		}),
		gaps: with.NewCounter(prometheus.CounterOpts{
			Name: "hubcloud_webhook_gaps_total",
			Help: "How often events of a webhook expired before its receiver took them.",
		}),
		disabled: with.NewCounter(prometheus.CounterOpts{
			Name: "hubcloud_webhook_disabled_total",
			Help: "Webhooks that the service has disabled because they failed.",
		}),
		failing: with.NewGauge(prometheus.GaugeOpts{
			Name: "hubcloud_webhook_failing",
			Help: "Webhooks that this replica delivers for and whose last request failed.",
		}),
	}
	for _, outcome := range []string{outcomeDelivered, outcomeRejected, outcomeUnanswered} {
		m.requests.WithLabelValues(outcome)
	}
	return m
}
