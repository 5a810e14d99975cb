package outbox

import (
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/streams/telemetry"
)

// metrics are the package's metrics, named hubcloud_outbox_….
type metrics struct {
	mails          mailCounters
	mailFailures   prometheus.Counter
	serverFailures prometheus.Counter
	waiting        prometheus.Gauge
	duration       prometheus.Histogram
}

// mailCounters count mails by outcome.
type mailCounters struct {
	queued, delivered, rejected, expired, obsolete, replaced prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	metric := telemetry.NewMetrics(registerer, "outbox")
	mails := metric.Counters(
		"mails_total",
		"Mails by outcome: `queued` by this process, and then `delivered`, `rejected` by the mail "+
			"server, `expired` undelivered, `obsolete` before delivery, or `replaced` by a newer one to "+
			"the same recipient. Any rise of `rejected` or `expired` means that a person waits for a "+
			"mail that does not come.",
		"outcome",
	)
	failures := metric.Counters("failures_total", "Failed deliveries that are retried, by cause. `mail`: the "+
		"server did not accept this mail yet. `server`: no mail can be delivered, because the mail server is down "+
		"or rejects the service's login.", "cause")
	return &metrics{
		mails: mailCounters{
			queued: mails.WithLabelValues("queued"), delivered: mails.WithLabelValues("delivered"),
			rejected: mails.WithLabelValues("rejected"), expired: mails.WithLabelValues("expired"),
			obsolete: mails.WithLabelValues("obsolete"),
			replaced: mails.WithLabelValues("replaced"),
		},
		mailFailures:   failures.WithLabelValues("mail"),
		serverFailures: failures.WithLabelValues("server"),
		waiting: metric.Gauge("waiting", "Mails of the whole installation that wait for delivery, as of at most "+
			"15 s ago. More than 0 for minutes means that the mail server does not accept them."),
		duration: metric.Histogram("delivery_duration_seconds", "Seconds that one attempt to deliver a mail took.",
			[]float64{.001, .005, .025, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}),
	}
}
