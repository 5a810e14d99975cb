package alarms

import (
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/streams/telemetry"
)

// metrics are the metrics of the notifier. Gauges of a process that stands by are 0.
type metrics struct {
	leading, followed, left, waiting prometheus.Gauge
	failures                         prometheus.Counter
	mails                            *prometheus.CounterVec
	seconds                          prometheus.Histogram
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	metric := telemetry.NewMetrics(registerer, "notifier")
	return &metrics{
		leading: metric.Gauge("leading", "1 in the process that mails about alarms."),
		followed: metric.Gauge("followed_conditions", "Conditions that members were mailed about, or will be when "+
			"they have stood for a while."),
		left: metric.Gauge("left_conditions", "Conditions that nobody is mailed about, because their organization "+
			"has too many."),
		waiting: metric.Gauge("waiting_mails", "Mails that are decided and that the outbox has not taken yet."),
		failures: metric.Counter("failures_total", "Turns in which conditions could not be observed, or mails not "+
			"be queued."),
		mails: metric.Counters("mails_total", "Mails queued, by kind.", "kind", "begin", "end", "digest"),
		seconds: metric.Histogram("turn_seconds", "Duration of the turns of organizations, which observe "+
			"conditions and queue mails.", prometheus.ExponentialBuckets(0.002, 4, 8)),
	}
}

// stopLeading sets the gauges of a process that stands by.
func (m *metrics) stopLeading() {
	for _, g := range []prometheus.Gauge{m.leading, m.followed, m.left, m.waiting} {
		g.Set(0)
	}
}
