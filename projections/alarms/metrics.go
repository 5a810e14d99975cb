package alarms

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are the metrics of the notifier. Gauges of a process that stands by are 0.
type metrics struct {
	leading, followed, left, waiting prometheus.Gauge
	failures                         prometheus.Counter
	mails                            *prometheus.CounterVec
	seconds                          prometheus.Histogram
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	auto := promauto.With(registerer)
	gauge := func(name, help string) prometheus.Gauge {
		return auto.NewGauge(prometheus.GaugeOpts{
			Name: "hubcloud_notifier_" + name, Help: help,
		})
	}
	m := &metrics{
		leading: gauge("leading", "1 in the process that mails about alarms."),
		followed: gauge(
			"followed_conditions",
			"Conditions that members were mailed about, or will be when they have stood for a while.",
		),
		left: gauge(
			"left_conditions",
			"Conditions that nobody is mailed about, because their organization has too many.",
		),
		waiting: gauge(
			"waiting_mails", "Mails that are decided and that the outbox has not taken yet.",
		),
		failures: auto.NewCounter(prometheus.CounterOpts{
			Name: "hubcloud_notifier_failures_total",
			Help: "Turns in which conditions could not be observed, or mails not be queued.",
		}),
		mails: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "hubcloud_notifier_mails_total", Help: "Mails queued, by kind.",
		}, []string{"kind"}),
		seconds: auto.NewHistogram(prometheus.HistogramOpts{
			Name: "hubcloud_notifier_turn_seconds",
			Help: "Duration of the turns of organizations, which observe conditions and queue " +
				"mails.",
			Buckets: prometheus.ExponentialBuckets(0.002, 4, 8),
		}),
	}
	for _, kind := range []string{"begin", "end", "digest"} {
		m.mails.WithLabelValues(kind)
	}
	return m
}

// stopLeading sets the gauges of a process that stands by.
func (m *metrics) stopLeading() {
	for _, g := range []prometheus.Gauge{m.leading, m.followed, m.left, m.waiting} {
		g.Set(0)
	}
}
