package identity

import (
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/streams/telemetry"
)

func newEnrolments(r prometheus.Registerer) *prometheus.CounterVec {
	metric := telemetry.NewMetrics(r, "identity")
	return metric.Counters("enrolments_total", "Requests for a hub's certificate, by result: issued, or the "+
		"error type. A rise of unauthenticated means an attacker who tries serials, or hubs whose secrets are not "+
		"in the inventory; of rate_limited, a hub that enrols in a loop (`hubcloud doctor` names it).",
		"result", append(telemetry.Values([]domain.Code{
			domain.CodeUnauthenticated, domain.CodeInvalidRequest, domain.CodeRateLimited,
			domain.CodeServiceUnavailable, domain.CodeInternal,
		}), resultIssued)...)
}

func newCallouts(r prometheus.Registerer) *prometheus.CounterVec {
	metric := telemetry.NewMetrics(r, "identity")
	return metric.Counters("callouts_total", "Decisions about connections to the broker, by result: accepted, "+
		"or the reason of the rejection. A rise of directory_unavailable or too_late means that the service "+
		"cannot decide; of not_current_certificate, hubs that use a replaced certificate; of blocked, a hub that "+
		"an operator has blocked; of too_often, a hub that connects in a loop (the log names it).",
		"result", append(telemetry.Values(reasons()), resultAccepted)...)
}

func newCalloutDuration(r prometheus.Registerer) prometheus.Histogram {
	metric := telemetry.NewMetrics(r, "identity")
	// From a hub in memory to the longest wait for the directory.
	return metric.Histogram("callout_duration_seconds", "Seconds to decide about a connection to the broker. The "+
		"broker waits 5 s.", telemetry.LatencyBuckets(.0001, 5))
}

func newDisconnected(r prometheus.Registerer) prometheus.Counter {
	metric := telemetry.NewMetrics(r, "identity")
	return metric.Counter("connections_cut_total", "Connections of hubs that were closed because their "+
		"certificate was revoked.")
}

// register registers the expiry times of the authority's and the broker's certificates.
func (a *Authority) register(r prometheus.Registerer) {
	metric := telemetry.NewMetrics(r, "identity")
	metric.GaugeFunc("authority_expiry_timestamp_seconds", "Unix time at which the certificate authority expires. "+
		"Hub certificates cannot outlive it.", func() float64 { return float64(a.chain[0].NotAfter.Unix()) })
	metric.GaugeFunc("broker_certificate_expiry_timestamp_seconds", "Unix time at which this process's broker "+
		"certificate expires; 0 before the first hub connects. It is renewed 30 days before.",
		a.brokerCertificateEnd)
}

// brokerCertificateEnd returns the Unix time at which the broker's certificate expires, or zero before the first
// connection.
func (a *Authority) brokerCertificateEnd() float64 {
	a.serverMu.Lock()
	defer a.serverMu.Unlock()
	if a.server.expiresAt.IsZero() {
		return 0
	}
	return float64(a.server.expiresAt.Unix())
}
