package portal

import "github.com/prometheus/client_golang/prometheus"

// metrics are the metrics of the package, named hubcloud_portal_….
type metrics struct {
	asked, limited, signedIn, expired, signedOut prometheus.Counter
	forged                                       prometheus.Counter
}

// newMetrics returns the metrics, registered unless r is nil.
func newMetrics(r prometheus.Registerer) *metrics {
	steps := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hubcloud_portal_sign_ins_total",
		Help: "Steps of signing in: a link was `asked` for, was refused because too many were " +
			"(`limited`), signed somebody in (`signed_in`), or had " +
			"been used or expired (`expired`); and sessions that were ended by hand " +
			"(`signed_out`). A rise of `asked` without `signed_in` is mail " +
			"that does not arrive; of `limited`, somebody who has mail sent to others.",
	}, []string{"step"})
	m := &metrics{
		asked: steps.WithLabelValues(
			"asked",
		), limited: steps.WithLabelValues("limited"), signedIn: steps.WithLabelValues("signed_in"),
		expired: steps.WithLabelValues("expired"), signedOut: steps.WithLabelValues("signed_out"),
		forged: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hubcloud_portal_forged_forms_total",
			Help: "Forms that were refused because no page of the sender's session had sent " +
				"them. A rise is an attack, or a --public-url that is " +
				"not the one in browsers.",
		}),
	}
	if r != nil {
		r.MustRegister(steps, m.forged)
	}
	return m
}
