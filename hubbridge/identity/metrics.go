package identity

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
)

func newEnrolments() *prometheus.CounterVec {
	results := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hubcloud_identity_enrolments_total",
		Help: "Requests for a hub's certificate, by result: issued, or the type of the error. A " +
			"rise of unauthenticated is somebody who tries " +
			"serials, or a batch of hubs whose secrets are not in the inventory; of " +
			"rate_limited, a hub that asks for certificates without end, " +
			"which `hubcloud doctor` names.",
	}, []string{"result"})
	for _, result := range []string{
		resultIssued, string(domain.CodeUnauthenticated), string(domain.CodeInvalidRequest),
		string(domain.CodeRateLimited),
		string(domain.CodeServiceUnavailable), string(domain.CodeInternal),
	} {
		results.WithLabelValues(result)
	}
	return results
}

func newCallouts() *prometheus.CounterVec {
	results := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hubcloud_identity_callouts_total",
		Help: "Connections that the broker asked about, by result: accepted, or why not. A rise " +
			"of directory_unavailable or too_late is a service " +
			"that cannot answer; of not_current_certificate, hubs that keep coming with a " +
			"certificate that was replaced; of blocked, a hub that an operator " +
			"has blocked; of too_often, a hub that connects without end, which the log names.",
	}, []string{"result"})
	results.WithLabelValues(resultAccepted)
	for _, r := range reasons() {
		results.WithLabelValues(string(r))
	}
	return results
}

func newCalloutDuration() prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "hubcloud_identity_callout_duration_seconds",
		Help: "Seconds from taking up a question of the broker's about a connection to its " +
			"answer; the broker waits five.",
		// From a hub whose record is in memory to the longest that the directory is waited for.
		Buckets: []float64{
			.0001,
			.00025,
			.0005,
			.001,
			.0025,
			.005,
			.01,
			.025,
			.05,
			.1,
			.25,
			.5,
			1,
			2.5,
			5,
		},
	})
}

func newKicks(r prometheus.Registerer) prometheus.Counter {
	kicks := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "hubcloud_identity_connections_cut_total",
		Help: "Connections of hubs that were cut because their certificate was revoked.",
	})
	if r != nil {
		r.MustRegister(kicks)
	}
	return kicks
}

// register publishes when the authority's certificates end.
func (a *Authority) register(r prometheus.Registerer) {
	gauge := func(certificate, help string, end func() time.Time) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "hubcloud_identity_" + certificate + "_expiry_timestamp_seconds", Help: help,
		}, func() float64 {
			if t := end(); !t.IsZero() {
				return float64(t.Unix())
			}
			return 0
		})
	}
	r.MustRegister(
		gauge(
			"authority",
			"Seconds since 1970 at which the certificate authority ends. Certificates of hubs "+
				"cannot outlive it: every hub needs another one before.",
			func() time.Time { return a.chain[0].NotAfter },
		),
		gauge(
			"broker_certificate",
			"Seconds since 1970 at which the broker's certificate ends, which this process shows "+
				"to hubs; 0 before the first hub. It renews itself 30 days before.",
			a.brokerCertificateEnd,
		),
	)
}

// brokerCertificateEnd is zero before the first connection asked for a certificate.
func (a *Authority) brokerCertificateEnd() time.Time {
	a.serverMu.Lock()
	defer a.serverMu.Unlock()
	return a.server.expiresAt
}
