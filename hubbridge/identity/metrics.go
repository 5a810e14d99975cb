package identity

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"hubcloud/domain"
	"hubcloud/streams/telemetry"
)

func newEnrolments(r prometheus.Registerer) *prometheus.CounterVec {
	results := promauto.With(r).NewCounterVec(prometheus.CounterOpts{
		Name: "hubcloud_identity_enrolments_total",
		Help: "Requests for a hub's certificate, by result: issued, or the error type. A rise of " +
			"unauthenticated means an attacker who tries serials, or hubs whose secrets are not " +
			"in the inventory; of rate_limited, a hub that enrols in a loop (`hubcloud doctor` " +
			"names it).",
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

func newCallouts(r prometheus.Registerer) *prometheus.CounterVec {
	results := promauto.With(r).NewCounterVec(prometheus.CounterOpts{
		Name: "hubcloud_identity_callouts_total",
		Help: "Decisions about connections to the broker, by result: accepted, or the reason of " +
			"the rejection. A rise of directory_unavailable or too_late means that the service " +
			"cannot decide; of not_current_certificate, hubs that use a replaced certificate; of " +
			"blocked, a hub that an operator has blocked; of too_often, a hub that connects in a " +
			"loop (the log names it).",
	}, []string{"result"})
	results.WithLabelValues(resultAccepted)
	for _, r := range reasons() {
		results.WithLabelValues(string(r))
	}
	return results
}

func newCalloutDuration(r prometheus.Registerer) prometheus.Histogram {
	return promauto.With(r).NewHistogram(prometheus.HistogramOpts{
		Name: "hubcloud_identity_callout_duration_seconds",
		Help: "Seconds to decide about a connection to the broker. The broker waits 5 s.",
		// From a hub in memory to the longest wait for the directory.
		Buckets: telemetry.LatencyBuckets(.0001, 5),
	})
}

func newDisconnected(r prometheus.Registerer) prometheus.Counter {
	return promauto.With(r).NewCounter(prometheus.CounterOpts{
		Name: "hubcloud_identity_connections_cut_total",
		Help: "Connections of hubs that were closed because their certificate was revoked.",
	})
}

// register registers the expiry times of the authority's and the broker's certificates.
func (a *Authority) register(r prometheus.Registerer) {
	gauge := func(certificate, help string, end func() time.Time) {
		promauto.With(r).NewGaugeFunc(prometheus.GaugeOpts{
			Name: "hubcloud_identity_" + certificate + "_expiry_timestamp_seconds", Help: help,
		}, func() float64 {
			if t := end(); !t.IsZero() {
				return float64(t.Unix())
			}
			return 0
		})
	}
	gauge(
		"authority",
		"Unix time at which the certificate authority expires. Hub certificates cannot "+
			"outlive it.",
		func() time.Time { return a.chain[0].NotAfter },
	)
	gauge(
		"broker_certificate",
		"Unix time at which this process's broker certificate expires; 0 before the first "+
			"hub connects. It is renewed 30 days before.",
		a.brokerCertificateEnd,
	)
}

// brokerCertificateEnd returns when the broker's certificate expires, or zero before the first
// connection.
func (a *Authority) brokerCertificateEnd() time.Time {
	a.serverMu.Lock()
	defer a.serverMu.Unlock()
	return a.server.expiresAt
}
