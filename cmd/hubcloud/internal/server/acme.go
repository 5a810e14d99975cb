package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/streams"
)

const (
	// acmeTimeout bounds one request to the ACME server.
	acmeTimeout = 30 * time.Second
	// acmeRetry is how long a domain without a certificate waits for the next attempt. Public
	// authorities allow few failures per hour.
	acmeRetry = 5 * time.Minute
	// expiryCheckInterval is the time between two checks of the certificates' ends.
	expiryCheckInterval = time.Hour
	// renewalWarning is how long before its end a certificate that was not renewed is reported, or
	// a sixth of its life if that is shorter. It is renewed 30 days before its end, or when a third
	// of its life is left.
	renewalWarning = 14 * 24 * time.Hour
)

// acmeCertificates obtains certificates from an authority and renews them. The authority connects
// to the domains: to port 443 (challenge tls-alpn-01), or to port 80 (http-01) if challenges is
// served there.
type acmeCertificates struct {
	manager *autocert.Manager
	domains []string
	logger  *slog.Logger
	expiry  func(time.Time)
}

// newACME returns the certificates of the domains in cfg, kept in dir with the account's key.
// expiry is called with the first end of the certificates in use. newACME sends no request.
func newACME(
	cfg Config, dir string, expiry func(time.Time), logger *slog.Logger,
) (*acmeCertificates, error) {
	client := &http.Client{Timeout: acmeTimeout}
	if cfg.ACMECA != "" {
		text, err := os.ReadFile(cfg.ACMECA)
		if err != nil {
			return nil, err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s contains no certificate", cfg.ACMECA)
		}
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
		client.Transport = transport
	}
	return &acmeCertificates{
		manager: &autocert.Manager{
			Prompt: autocert.AcceptTOS, Cache: acmeCache{autocert.DirCache(dir)},
			HostPolicy: autocert.HostWhitelist(cfg.ACMEDomains...),
			Client: &acme.Client{
				DirectoryURL: cfg.acmeDirectory(), HTTPClient: client, UserAgent: installation.UserAgent(),
			},
		},
		domains: cfg.ACMEDomains, logger: logger, expiry: expiry,
	}, nil
}

// TLS returns the configuration for a listener. A handshake for a domain without a certificate
// waits for one; a handshake for another name fails.
func (a *acmeCertificates) TLS() *tls.Config {
	config := a.manager.TLSConfig()
	config.MinVersion, config.CipherSuites = tls.VersionTLS12, streams.CipherSuites()
	config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if slices.Equal(hello.SupportedProtos, []string{acme.ALPNProto}) {
			return a.manager.GetCertificate(hello)
		}
		name := hello.ServerName
		if name == "" {
			name = a.domains[0]
		}
		return a.manager.GetCertificate(ecdsaHello(name))
	}
	return config
}

// ecdsaHello returns the hello of a client that supports ECDSA, as all have done for years. The
// manager would obtain a second certificate, for RSA, for a client that offers TLS 1.3 only.
func ecdsaHello(domain string) *tls.ClientHelloInfo {
	return &tls.ClientHelloInfo{
		ServerName:       domain,
		CipherSuites:     []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
		SupportedCurves:  []tls.CurveID{tls.CurveP256},
		SignatureSchemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256},
	}
}

// challenges returns a handler for port 80 that answers the authority's challenges (http-01) and
// passes other requests to next.
func (a *acmeCertificates) challenges(next http.Handler) http.Handler {
	answer := a.manager.HTTPHandler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host, _, err := net.SplitHostPort(r.Host); err == nil {
			// The manager compares the header Host with the domains. It has a port if the
			// authority connects to another one than 80, as those for tests do.
			r = r.Clone(r.Context())
			r.Host = host
		}
		answer.ServeHTTP(w, r)
	})
}

// Run obtains the certificates, and reports those that cannot be obtained or renewed, until ctx
// ends.
func (a *acmeCertificates) Run(ctx context.Context) error {
	inUse := map[string]time.Time{} // the ends of the certificates, by domain
	for {
		wait := expiryCheckInterval
		for _, domain := range a.domains {
			certificate, err := a.get(ctx, domain)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				wait = acmeRetry
				a.logger.Warn(
					"certificate not obtained", "domain", domain,
					"retry_after", acmeRetry.String(), "error", err,
				)
				continue
			}
			a.report(domain, certificate, inUse)
		}
		if len(inUse) == len(a.domains) {
			a.expiry(slices.MinFunc(slices.Collect(maps.Values(inUse)), time.Time.Compare))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// get returns a domain's certificate, and obtains it first if it is missing. If ctx ends first, the
// manager goes on until its own time limit of five minutes, or until the process ends.
func (a *acmeCertificates) get(ctx context.Context, domain string) (*x509.Certificate, error) {
	type result struct {
		certificate *tls.Certificate
		err         error
	}
	got := make(chan result, 1)
	go func() {
		certificate, err := a.manager.GetCertificate(ecdsaHello(domain))
		got <- result{certificate, err}
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r := <-got:
		if r.err != nil {
			return nil, r.err
		}
		return r.certificate.Leaf, nil
	}
}

// report logs a certificate that came into use, and one that should have been renewed long ago.
func (a *acmeCertificates) report(domain string, c *x509.Certificate, inUse map[string]time.Time) {
	left := time.Until(c.NotAfter)
	switch {
	case !c.NotAfter.Equal(inUse[domain]):
		inUse[domain] = c.NotAfter
		a.logger.Info("certificate in use", "domain", domain, "expires_at", c.NotAfter)
	case left < min(renewalWarning, c.NotAfter.Sub(c.NotBefore)/6):
		a.logger.Warn("certificate not renewed", "domain", domain, "expires_at", c.NotAfter)
	}
}
