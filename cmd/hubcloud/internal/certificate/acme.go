package certificate

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

	"hubcloud/streams"
)

const (
	// acmeTimeout bounds one request to the ACME server.
	acmeTimeout = 30 * time.Second
	// retryAfter is how long a domain without a certificate waits for the next attempt. Public
	// authorities allow few failures per hour.
	retryAfter = 5 * time.Minute
	// checkInterval is the time between two checks of the certificates' ends.
	checkInterval = time.Hour
	// renewalWarning is how long before its end a certificate that was not renewed is reported, or
	// a sixth of its life if that is shorter. It is renewed 30 days before its end, or when a third
	// of its life is left.
	renewalWarning = 14 * 24 * time.Hour
)

// ACME obtains certificates from an authority and renews them. The authority connects to the
// domains: to port 443 (challenge tls-alpn-01), or to port 80 (http-01) if Challenges is served
// there.
type ACME struct {
	manager *autocert.Manager
	domains []string
	logger  *slog.Logger
	expiry  func(time.Time)
}

// ACMEConfig configures ACME. Every field but CA is required.
type ACMEConfig struct {
	// Domains are the names to obtain certificates for. Clients that name none get the first.
	Domains []string
	// Directory is the URL of the ACME server's directory.
	Directory string
	// CA is the path of certificates (PEM) that the ACME server's own certificate is checked with.
	// Defaults to the system's.
	CA string
	// Dir keeps the account's key and the certificates.
	Dir string
	// UserAgent is the header User-Agent of requests to the ACME server.
	UserAgent string
	// Expiry is called with the first end of the certificates in use.
	Expiry func(time.Time)
	Logger *slog.Logger
}

// NewACME returns an ACME. It sends no request. The caller must have accepted the authority's terms
// of service.
func NewACME(cfg ACMEConfig) (*ACME, error) {
	client := &http.Client{Timeout: acmeTimeout}
	if cfg.CA != "" {
		text, err := os.ReadFile(cfg.CA)
		if err != nil {
			return nil, err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s contains no certificate", cfg.CA)
		}
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
		client.Transport = transport
	}
	return &ACME{
		manager: &autocert.Manager{
			Prompt: autocert.AcceptTOS, Cache: cache{autocert.DirCache(cfg.Dir)},
			HostPolicy: autocert.HostWhitelist(cfg.Domains...),
			Client: &acme.Client{
				DirectoryURL: cfg.Directory, HTTPClient: client, UserAgent: cfg.UserAgent,
			},
		},
		domains: cfg.Domains, logger: cfg.Logger, expiry: cfg.Expiry,
	}, nil
}

// TLS returns the configuration for a listener. A handshake for a domain without a certificate
// waits for one; a handshake for another name fails.
func (a *ACME) TLS() *tls.Config {
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
		return a.manager.GetCertificate(request(name))
	}
	return config
}

// request returns the hello of a client that supports ECDSA, as all have done for years. The
// manager would obtain a second certificate, for RSA, for a client that offers TLS 1.3 only.
func request(domain string) *tls.ClientHelloInfo {
	return &tls.ClientHelloInfo{
		ServerName:       domain,
		CipherSuites:     []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
		SupportedCurves:  []tls.CurveID{tls.CurveP256},
		SignatureSchemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256},
	}
}

// Challenges returns a handler for port 80 that answers the authority's challenges (http-01) and
// passes other requests to next.
func (a *ACME) Challenges(next http.Handler) http.Handler {
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
func (a *ACME) Run(ctx context.Context) error {
	inUse := map[string]time.Time{} // the ends of the certificates, by domain
	for {
		wait := checkInterval
		for _, domain := range a.domains {
			certificate, err := a.get(ctx, domain)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				wait = retryAfter
				a.logger.Warn(
					"certificate not obtained", "domain", domain,
					"retry_after", retryAfter.String(), "error", err,
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
func (a *ACME) get(ctx context.Context, domain string) (*x509.Certificate, error) {
	type result struct {
		certificate *tls.Certificate
		err         error
	}
	got := make(chan result, 1)
	go func() {
		certificate, err := a.manager.GetCertificate(request(domain))
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
func (a *ACME) report(domain string, c *x509.Certificate, inUse map[string]time.Time) {
	left := time.Until(c.NotAfter)
	switch {
	case !c.NotAfter.Equal(inUse[domain]):
		inUse[domain] = c.NotAfter
		a.logger.Info("certificate in use", "domain", domain, "expires_at", c.NotAfter)
	case left < min(renewalWarning, c.NotAfter.Sub(c.NotBefore)/6):
		a.logger.Warn("certificate not renewed", "domain", domain, "expires_at", c.NotAfter)
	}
}
