package outbox

import "github.com/prometheus/client_golang/prometheus"

// metrics is what the package counts.
type metrics struct {
	mails    mailCounters
	later    prometheus.Counter
	closed   prometheus.Counter
	waiting  prometheus.Gauge
	duration prometheus.Histogram
}

// mailCounters counts mails by what became of them.
type mailCounters struct{ queued, delivered, refused, expired, obsolete, replaced prometheus.Counter }

func newMetrics(registerer prometheus.Registerer) *metrics {
	mails := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hubcloud_outbox_mails_total",
		Help: "Mails by what became of them: queued, and then delivered, refused for good, " +
			"expired undelivered, obsolete before they went out, " +
			"or replaced by a newer one to the same recipient. " +
			"Any rise of refused or expired is somebody who waits for a link that does not come.",
	}, []string{"outcome"})
	failures := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hubcloud_outbox_failures_total",
		Help: "Deliveries that failed and are repeated: `mail`, this one was not taken yet, or " +
			"`server`, none can be delivered. " +
			"A rise of server is a mail server that is away, or does not let the service in.",
	}, []string{"cause"})
	m := &metrics{
		mails: mailCounters{
			queued: mails.WithLabelValues("queued"), delivered: mails.WithLabelValues("delivered"),
			refused: mails.WithLabelValues("refused"), expired: mails.WithLabelValues("expired"),
			obsolete: mails.WithLabelValues(
				"obsolete",
			), replaced: mails.WithLabelValues("replaced"),
		},
		later: failures.WithLabelValues("mail"), closed: failures.WithLabelValues("server"),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hubcloud_outbox_waiting",
			Help: "Mails that wait for delivery, in all the installation, as of at most 15 s " +
				"ago. More than 0 for minutes is a mail server that does not take them.",
		}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "hubcloud_outbox_delivery_duration_seconds",
			Help:    "Seconds of one try to deliver a mail.",
			Buckets: []float64{.001, .005, .025, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}),
	}
	if registerer != nil {
		registerer.MustRegister(mails, failures, m.waiting, m.duration)
	}
	return m
}
