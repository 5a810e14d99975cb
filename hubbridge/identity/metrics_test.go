package identity_test

import (
	"crypto/tls"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/hubbridge/identity"
	"hubcloud/streams/telemetry/telemetrytest"
)

// TestExpiryIsTold: when the authority ends, and the broker's certificate once a hub has been shown
// one.
func TestExpiryIsTold(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	authority, err := identity.OpenAuthority(
		identity.AuthorityConfig{Dir: t.TempDir(), Logger: quiet(), Metrics: registry},
	)
	if err != nil {
		t.Fatal(err)
	}
	value := func(certificate string) time.Time {
		t.Helper()
		return time.Unix(
			int64(
				telemetrytest.Value(
					t, registry, "hubcloud_identity_"+certificate+"_expiry_timestamp_seconds",
				),
			),
			0,
		)
	}
	if end := parseCertificate(t, string(authority.CAPEM())).NotAfter; !value(
		"authority",
	).Equal(end) {
		t.Errorf("the authority ends at %v, told is %v", end, value("authority"))
	}
	if got := value("broker_certificate"); got.Unix() != 0 {
		t.Errorf("a certificate that nobody was shown ends at %v", got)
	}
	shown, err := authority.ServerTLS().GetCertificate(&tls.ClientHelloInfo{})
	if err != nil {
		t.Fatal(err)
	}
	if got := value("broker_certificate"); !got.Equal(shown.Leaf.NotAfter) {
		t.Errorf("the broker's ends at %v, told is %v", shown.Leaf.NotAfter, got)
	}
	telemetrytest.Lint(t, registry)
}
