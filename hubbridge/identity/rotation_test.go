package identity_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubcloud/hubbridge/identity"
	"hubcloud/streams/streamstest"
)

// TestAuthorityRotation replaces an authority in three steps. At first hubs that enrol are told to
// trust the next authority too. Then the next authority issues all certificates, while those of the
// former are still accepted. At last the former is removed.
func TestAuthorityRotation(t *testing.T) {
	t.Parallel()
	far := time.Now().Add(5000 * day)
	former := external(t, far, func(*x509.Certificate) {})
	next := external(t, far, func(*x509.Certificate) {})
	with := func(cfg identity.AuthorityConfig, also string) *identity.Authority {
		cfg.AlsoFile = also
		return openAuthority(t, cfg)
	}
	first := with(former, "")
	announced := with(former, next.CertificateFile)
	switched := with(next, former.CertificateFile)
	last := with(next, "")

	hub := func(from *identity.Authority) *tls.Config { return hubTLS(t, from) }
	for what, c := range map[string]struct {
		hub    *tls.Config
		broker *identity.Authority
		in     bool
	}{
		"old hub, before":                                     {hub(first), first, true},
		"old hub, next authority announced":                   {hub(first), announced, true},
		"hub that trusts both, next authority announced":      {hub(announced), announced, true},
		"hub that trusts both, switched":                      {hub(announced), switched, true},
		"new hub, switched":                                   {hub(switched), switched, true},
		"new hub, switched back":                              {hub(switched), announced, true},
		"new hub, former authority removed":                   {hub(switched), last, true},
		"old hub, switched":                                   {hub(first), switched, false},
		"certificate of the former, former authority removed": {hub(announced), last, false},
		"old hub, switched without announcement":              {hub(first), last, false},
	} {
		if err := shake(c.hub, c.broker.ServerTLS()); (err == nil) != c.in {
			t.Errorf("%s: %v", what, err)
		}
	}

	// The broker accepted suites in CBC mode, which scanners report.
	for suite, in := range map[uint16]bool{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA:    false,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA:    false,
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: true,
	} {
		config := hub(first)
		config.CipherSuites = []uint16{suite}
		if err := shake(config, first.ServerTLS()); (err == nil) != in {
			t.Errorf("%s: got %v, want it accepted: %t", tls.CipherSuiteName(suite), err, in)
		}
	}

	leaf := filepath.Join(t.TempDir(), "leaf.pem")
	issued, err := first.IssueHub("hub-7k2m-q4xd-93ta", newKey(t).Public())
	if err == nil {
		err = os.WriteFile(leaf, issued.PEM, 0o600)
	}
	streamstest.Must(t, err)
	for what, c := range map[string]struct{ also, want string }{
		"a hub's certificate": {leaf, "not the certificate of an authority"},
		"an expired one": {
			external(t, time.Now().Add(-time.Minute), func(*x509.Certificate) {}).CertificateFile,
			"expired on",
		},
		"a key":   {former.KeyFile, "only certificates are allowed"},
		"no file": {"/nowhere", "no such file"},
	} {
		bad := next
		bad.AlsoFile = c.also
		if _, err := identity.OpenAuthority(bad); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// hubTLS returns the configuration of a hub that has enrolled at an authority.
func hubTLS(t *testing.T, from *identity.Authority) *tls.Config {
	t.Helper()
	key := newKey(t)
	issued, err := from.IssueHub("hub-7k2m-q4xd-93ta", key.Public())
	streamstest.Must(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(from.CAPEM())
	return &tls.Config{
		RootCAs: roots, ServerName: "localhost", MaxVersion: tls.VersionTLS12,
		Certificates: []tls.Certificate{
			{Certificate: [][]byte{parseCertificate(t, string(issued.PEM)).Raw}, PrivateKey: key},
		},
	}
}

// shake tries a handshake and returns the errors of both sides.
func shake(hub, broker *tls.Config) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	shaken := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			err = errors.Join(tls.Server(conn, broker).Handshake(), conn.Close())
		}
		shaken <- err
	}()
	conn, err := tls.Dial("tcp", listener.Addr().String(), hub)
	if err == nil {
		err = conn.Close()
	}
	return errors.Join(err, <-shaken)
}
