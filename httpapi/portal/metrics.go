package portal

import (
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/streams/telemetry"
)

// metrics are the metrics of the package: hubcloud_portal_… and, of event streams, hubcloud_live_….
type metrics struct {
	requested, limited, signedIn, expired, signedOut prometheus.Counter
	rejected, unavailable, forged                    prometheus.Counter
	streams                                          prometheus.Gauge
	events, gaps                                     prometheus.Counter
}

// newMetrics returns the metrics, registered unless r is nil. provider may be nil.
func newMetrics(r prometheus.Registerer, provider Provider) *metrics {
	metric, live := telemetry.NewMetrics(r, "portal"), telemetry.NewMetrics(r, "live")
	metric.GaugeFunc("provider_away", "1 while the identity provider (`--oidc`) does not answer, and otherwise 0. "+
		"Meanwhile only owners, and people who never signed in with it, can sign in.", func() float64 {
		if provider != nil && !provider.Answers() {
			return 1
		}
		return 0
	})
	steps := metric.Counters("sign_ins_total", "Steps of signing in: a link was requested (`asked`), was rejected "+
		"by a rate limit (`limited`), signed a person in (`signed_in`), or had been used or had expired "+
		"(`expired`); the identity provider, or the rules for it, rejected a person (`rejected`), or it did not "+
		"answer (`unavailable`); and sessions ended by signing out (`signed_out`). A rise of `asked` without "+
		"`signed_in` means that mail does not arrive; a rise of `limited`, that a client requests mails to other "+
		"people.", "step")
	return &metrics{
		requested: steps.WithLabelValues("asked"),
		limited:   steps.WithLabelValues("limited"),
		signedIn:  steps.WithLabelValues("signed_in"),
		expired:   steps.WithLabelValues("expired"),
		signedOut: steps.WithLabelValues("signed_out"),
		rejected:  steps.WithLabelValues("rejected"), unavailable: steps.WithLabelValues("unavailable"),
		forged: metric.Counter("forged_forms_total", "Forms rejected because they were not sent from a page of "+
			"the session. A rise means an attack, or that browsers use another URL than --public-url."),
		streams: live.Gauge("streams", "Open event streams of portal pages."),
		events: live.Counter("stream_events_total", "Events sent to portal pages. An event sent to two pages "+
			"counts twice."),
		gaps: live.Counter("gaps_total", "Gaps reported to portal pages: events of a hub that are gone, and "+
			"expired positions."),
	}
}
