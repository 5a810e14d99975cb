package https

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"hubcloud/httpapi/client"
	"hubcloud/hubbridge/kit/hub"
	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// The names of the service. The service listens for HTTPS at 127.0.0.1 only, so the second name can
// be validated at the redirecting port only (http-01), the first one at both (tls-alpn-01).
const (
	firstName  = "hubs.example.org"
	secondName = "portal.example.org"
)

// TestACME obtains certificates for two names, uses the service over them, and starts it again
// while the ACME server is gone.
func TestACME(t *testing.T) {
	t.Parallel()
	plain := streamstest.FreeAddress(t)
	var issuer *authority
	service := harness.StartAs(t, func(s *harness.Service) []string {
		issuer = startAuthority(
			t, plain, s.HTTP,
			map[string]string{firstName: "127.0.0.1", secondName: "127.0.0.2"},
		)
		return []string{
			"--acme-domain", firstName + "," + secondName, "--acme-accept-terms",
			"--acme-directory", issuer.directory, "--acme-ca", issuer.caFile,
			"--http-redirect", fmt.Sprintf(":%d", port(t, plain)), "--public-mqtt", s.MQTT,
		}
	})
	browser := newBrowser(t, service, issuer.roots)
	var first, second *x509.Certificate
	for name, into := range map[string]**x509.Certificate{
		firstName: &first, secondName: &second,
	} {
		streamstest.EventuallyNil(t, "certificate of "+name, func() (err error) {
			*into, err = shown(service.HTTP, name, issuer.roots)
			return err
		})
	}
	t.Run("headers", func(t *testing.T) { headers(t, service, browser) })
	t.Run("redirect", func(t *testing.T) { redirect(t, plain) })
	t.Run("stream", func(t *testing.T) { stream(t, service, browser) })
	t.Run("doctor", func(t *testing.T) {
		for _, component := range service.For(t).CLI("doctor") {
			if detail := component["detail"].(string); component["name"] == "certificates" &&
				!strings.Contains(detail, "the certificate of the public port is valid until") {
				t.Errorf("certificates: got %s, want that of the public port", detail)
			}
		}
	})
	issuer.stop()
	service.Stop()
	service.Begin()
	for name, before := range map[string]*x509.Certificate{firstName: first, secondName: second} {
		again, err := shown(service.HTTP, name, issuer.roots)
		if err != nil || !again.Equal(before) {
			t.Errorf("%s after a restart: got %v, want the certificate from before", name, err)
		}
	}
	if _, err := shown(service.HTTP, "other.example.org", issuer.roots); err == nil {
		t.Error("handshake for another name: got nil, want an error")
	}
}

// shown returns the certificate that a listener shows for a name, if a client that trusts roots
// accepts it.
func shown(address, name string, roots *x509.CertPool) (*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{ServerName: name, RootCAs: roots}}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// newBrowser returns a client with HTTP/2 that reaches the service under all names.
func newBrowser(t *testing.T, service *harness.Service, roots *x509.CertPool) *http.Client {
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, network, service.HTTP)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// publicURL returns the service's own URL.
func publicURL(service *harness.Service) string {
	return "https://" + firstName + service.HTTP[strings.LastIndex(service.HTTP, ":"):]
}

// headers checks what browsers need: HTTP/2, HSTS, and cookies that are sent over TLS only.
func headers(t *testing.T, service *harness.Service, browser *http.Client) {
	request, err := http.NewRequestWithContext(
		t.Context(), http.MethodGet, publicURL(service)+"/portal/sign-in", nil,
	)
	harness.Must(t, err)
	// The page replaces this cookie.
	request.AddCookie(&http.Cookie{Name: "__Host-hubcloud_notice", Value: "signed-out"})
	answer, err := browser.Do(request)
	harness.Must(t, err)
	defer answer.Body.Close()
	if answer.ProtoMajor != 2 ||
		answer.Header.Get("Strict-Transport-Security") != "max-age=15552000" {
		t.Errorf("got %s with headers %v, want HTTP/2.0 and HSTS", answer.Proto, answer.Header)
	}
	for _, cookie := range answer.Cookies() {
		if !cookie.Secure || !strings.HasPrefix(cookie.Name, "__Host-") {
			t.Errorf("cookie %s: want Secure and the prefix __Host-", cookie)
		}
	}
	if len(answer.Cookies()) == 0 {
		t.Error("got no cookie on the page for signing in")
	}
}

// redirect checks the port without TLS.
func redirect(t *testing.T, plain string) {
	client := &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
		Timeout: time.Minute,
	}
	answer, err := client.Get("http://" + plain + "/portal/?x=1")
	harness.Must(t, err)
	answer.Body.Close()
	if location := answer.Header.Get("Location"); answer.StatusCode != http.StatusPermanentRedirect ||
		!strings.HasPrefix(location, "https://"+firstName+":") ||
		!strings.HasSuffix(location, "/portal/?x=1") {
		t.Errorf("GET /portal/: got %d to %q, want 308 to HTTPS", answer.StatusCode, location)
	}
	answer, err = client.Post(
		"http://"+plain+"/link/v1/certificates", "application/json", strings.NewReader("{}"),
	)
	harness.Must(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusBadRequest ||
		!strings.Contains(string(body), "replace it") {
		t.Errorf("enrolment: got %d %s, %v, want 400 with advice", answer.StatusCode, body, err)
	}
}

// stream enrols a hub over TLS and follows its events over HTTP/2.
func stream(t *testing.T, service *harness.Service, browser *http.Client) {
	org := service.For(t).CLI(
		"org", "create", "--name", "Mill", "--owner-email", "mill@example.org",
	)[0]["org_id"].(string)
	_, key := service.For(t).Key(org)
	api, err := client.New(client.Config{
		BaseURL: publicURL(service) + "/v1", APIKey: key, HTTPClient: browser,
	})
	harness.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	site, err := api.CreateSite(ctx, "Mill")
	harness.Must(t, err)
	factory := service.For(t).Hub()
	hub, err := virtualhub.New(virtualhub.Config{
		Config: hub.Config{
			EnrollURL: publicURL(service), Serial: factory.Serial, Secret: factory.Secret,
			HTTPClient: browser, Logger: slog.New(slog.DiscardHandler),
		},
		Quiet: true,
	})
	harness.Must(t, err)
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- hub.Run(running) }()
	defer func() {
		stop()
		<-ended
		if err := hub.Close(); err != nil {
			t.Error(err)
		}
	}()
	streamstest.EventuallyNil(t, "the hub can be added", func() error {
		_, err := api.AddHub(ctx, client.HubAddition{Serial: factory.Serial, SiteID: site.ID})
		return err
	})
	request, err := http.NewRequestWithContext(
		ctx, http.MethodGet, publicURL(service)+"/v1/hubs/"+factory.HubID+"/events/stream", nil,
	)
	harness.Must(t, err)
	request.Header.Set("Authorization", "Bearer "+key)
	answer, err := browser.Do(request)
	harness.Must(t, err)
	defer answer.Body.Close()
	if answer.ProtoMajor != 2 || answer.StatusCode != http.StatusOK {
		t.Fatalf("stream: got %d over %s, want 200 over HTTP/2.0", answer.StatusCode, answer.Proto)
	}
	if _, err := api.Send(ctx, client.Command{
		HubID: factory.HubID, DeviceID: 1, Key: "lock", Value: false,
	}); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	part := make([]byte, 4096)
	for !strings.Contains(text.String(), "event: channel.observed") {
		n, err := answer.Body.Read(part)
		text.Write(part[:n])
		if err != nil {
			t.Fatalf("stream: got %q, %v, want the outcome of the command", text.String(), err)
		}
	}
}
