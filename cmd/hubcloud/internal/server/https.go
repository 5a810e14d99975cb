package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/crypto/acme"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/httpapi"
)

// certificateSource has the certificate of the public port.
type certificateSource interface {
	// TLS returns the configuration for the listener.
	TLS() *tls.Config
	// Run keeps the certificate up to date until ctx ends.
	Run(ctx context.Context) error
}

// validateHTTPS checks the fields of the group HTTPS.
func (c Config) validateHTTPS() error {
	switch {
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return errors.New("--tls-cert and --tls-key need each other")
	case c.TLSCert != "" && len(c.ACMEDomains) > 0:
		return errors.New("--tls-cert and --acme-domain: give only one of them")
	case len(c.ACMEDomains) == 0 && (c.ACMEDirectory != "" || c.ACMECA != "" ||
		c.ACMEAcceptTerms):
		return errors.New("--acme-… needs --acme-domain")
	case len(c.ACMEDomains) > 0 && !c.ACMEAcceptTerms:
		return fmt.Errorf(
			"--acme-domain needs --acme-accept-terms: read the terms of service of %s first",
			c.acmeDirectory(),
		)
	case c.HTTPRedirect != "" && !c.https():
		return errors.New("--http-redirect needs --tls-cert or --acme-domain")
	case c.HTTPRedirect != "" && installation.CheckAddress(c.HTTPRedirect) != nil:
		return fmt.Errorf(
			"--http-redirect %q: must be HOST:PORT or :PORT, where port 0 picks a free one",
			c.HTTPRedirect,
		)
	case c.https() && strings.HasPrefix(c.PublicURL, "http://"):
		return fmt.Errorf("--public-url %q: must be https://…, as --http speaks HTTPS", c.PublicURL)
	}
	for _, domain := range c.ACMEDomains {
		if !isDomain(domain) {
			return fmt.Errorf(
				"--acme-domain %q: must be a name such as hubs.example.org, without a wildcard, "+
					"a port or a path",
				domain,
			)
		}
	}
	if u, err := url.Parse(c.ACMEDirectory); c.ACMEDirectory != "" &&
		(err != nil || u.Scheme != "https" || u.Host == "") {
		return fmt.Errorf("--acme-directory %q: must be https://…", c.ACMEDirectory)
	}
	return nil
}

// isDomain reports whether text is a DNS name with at least two labels, in ASCII.
func isDomain(text string) bool {
	if _, err := netip.ParseAddr(text); err == nil || len(text) > 253 {
		return false
	}
	labels := strings.Split(text, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.Trim(label, "-") != label ||
			strings.ContainsFunc(label, func(r rune) bool {
				return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') &&
					(r < 'A' || r > 'Z')
			}) {
			return false
		}
	}
	return len(labels) > 1
}

// acmeDirectory returns the URL of the ACME server's directory.
func (c Config) acmeDirectory() string {
	if c.ACMEDirectory == "" {
		return acme.LetsEncryptURL
	}
	return c.ACMEDirectory
}

// openCertificate returns the source of the certificate, nil without HTTPS. The error names the
// flag.
func (s *process) openCertificate() (certificateSource, error) {
	end := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "hubcloud_certificate_expiry_timestamp_seconds",
		Help: "When the certificate of the public port ends, in Unix time; 0 without HTTPS, or " +
			"while there is no certificate yet.",
	})
	s.registry.MustRegister(end)
	expiry := func(at time.Time) { end.Set(float64(at.Unix())) }
	logger := s.logger.With("component", "certificate")
	switch {
	case s.cfg.TLSCert != "":
		files, err := openCertificateFiles(s.cfg.TLSCert, s.cfg.TLSKey, expiry, logger)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert, --tls-key: %w", err)
		}
		return files, nil
	case len(s.cfg.ACMEDomains) > 0:
		authority, err := newACME(s.cfg, s.dir.Path("acme"), expiry, logger)
		if err != nil {
			return nil, fmt.Errorf("--acme-ca: %w", err)
		}
		return authority, nil
	default:
		return nil, nil
	}
}

// serveHTTPS serves the API with TLS, and the address of --http-redirect.
func (s *web) serveHTTPS(listener net.Listener, api httpapi.API) error {
	redirect := api.Redirect(s.bound.PublicURL)
	if authority, ok := s.certificate.(*acmeCertificates); ok {
		redirect = authority.challenges(redirect)
	}
	if s.cfg.HTTPRedirect != "" {
		plain, err := net.Listen("tcp", s.cfg.HTTPRedirect)
		if err != nil {
			return fmt.Errorf("--http-redirect: %w", err)
		}
		s.bound.HTTPRedirect = plain.Addr().String()
		s.serveHTTP(api.Listener(plain), httpapi.NewServer(redirect, s.logger))
	}
	s.serveHTTP(
		api.TLSListener(listener, s.certificate.TLS()),
		httpapi.NewServer(withHSTS(api, s.bound.PublicURL), s.logger),
	)
	s.run(stopLoops, "certificate", s.certificate.Run)
	return nil
}

// withHSTS has browsers use HTTPS only, for 180 days after each answer (Strict-Transport-Security). The
// name localhost belongs to every program of a machine, so browsers remember nothing about it.
func withHSTS(next http.Handler, publicURL string) http.Handler {
	if u, err := url.Parse(publicURL); err == nil && u.Hostname() == "localhost" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Strict-Transport-Security", "max-age=15552000")
		next.ServeHTTP(w, r)
	})
}
