package identity_test

import (
	"crypto/tls"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/hubbridge/identity"
	"hubcloud/streams/streamstest"
)

// TestExpiryMetrics: the metrics have the expiry of the authority, and of the broker's
// certificate once a hub has received one.
func TestExpiryMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	authority, err := identity.OpenAuthority(
		identity.AuthorityConfig{Dir: t.TempDir(), Logger: streamstest.Logger(), Metrics: registry},
	)
	streamstest.Must(t, err)
	value := func(certificate string) time.Time {
		t.Helper()
		name := "hubcloud_identity_" + certificate + "_expiry_timestamp_seconds"
		return time.Unix(int64(streamstest.MetricValue(t, registry, name)), 0)
	}
	end := parseCertificate(t, string(authority.CAPEM())).NotAfter
	if got := value("authority"); !got.Equal(end) {
		t.Errorf("expiry of the authority: got %v, want %v", got, end)
	}
	if got := value("broker_certificate"); got.Unix() != 0 {
		t.Errorf("expiry without a broker certificate: got %v, want 0", got)
	}
	shown, err := authority.ServerTLS().GetCertificate(&tls.ClientHelloInfo{})
	streamstest.Must(t, err)
	if got := value("broker_certificate"); !got.Equal(shown.Leaf.NotAfter) {
		t.Errorf("expiry of the broker's certificate: got %v, want %v", got, shown.Leaf.NotAfter)
	}
}
