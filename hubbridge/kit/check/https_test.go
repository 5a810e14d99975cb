package check_test

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"hubcloud/hubbridge/identity"
	"hubcloud/hubbridge/kit/check"
	"hubcloud/streams/streamstest"
)

// A hub that enrols over HTTPS only is checked with a certificate that it trusts.
func TestEnrolmentOverHTTPS(t *testing.T) {
	t.Parallel()
	authority, err := identity.OpenAuthority(identity.AuthorityConfig{
		Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler),
	})
	streamstest.Must(t, err)
	certificate, err := authority.ServerTLS().GetCertificate(nil)
	streamstest.Must(t, err)
	checked := newCheck(t, check.Config{Certificate: certificate, Timeout: time.Minute})
	run(t, checked)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.CAPEM())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	url := checked.EnrolURL() + "/link/v1/certificates"
	if !strings.HasPrefix(url, "https://") {
		t.Errorf("the enrolment is at %s, want https", url)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
	streamstest.Must(t, err)
	request.Header.Set("Content-Type", "application/json")
	answer, err := (&http.Client{Transport: transport}).Do(request)
	streamstest.Must(t, err)
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusBadRequest {
		t.Errorf("an enrolment without members: got status %d, want 400", answer.StatusCode)
	}
}
