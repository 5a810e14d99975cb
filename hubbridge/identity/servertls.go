package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"slices"
	"time"

	"hubcloud/streams"
)

// serverRenewal is the remaining life at which the broker's certificate is replaced.
const serverRenewal = 30 * 24 * time.Hour

// serverCertificate is the broker's certificate. It is kept in memory only: hubs trust the
// authority, so every start can issue a new one for its hosts.
type serverCertificate struct {
	tls       *tls.Certificate
	expiresAt time.Time
}

// ServerTLS returns the TLS configuration of the broker's listener for hubs: TLS 1.2 or later, with
// a certificate for localhost, 127.0.0.1, ::1 and the configured hosts, which is renewed
// automatically. Clients must have a certificate of the authority or of a further one.
func (a *Authority) ServerTLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, CipherSuites: streams.CipherSuites(),
		ClientAuth: tls.RequireAndVerifyClientCert,
		ClientCAs:  a.pool,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return a.serverCertificate()
		},
	}
}

func (a *Authority) serverCertificate() (*tls.Certificate, error) {
	a.serverMu.Lock()
	defer a.serverMu.Unlock()
	// A certificate that expires with its authority cannot be renewed any further.
	soon := a.cfg.Now().Add(serverRenewal)
	if a.server.tls != nil && (soon.Before(a.server.expiresAt) || !a.server.expiresAt.Before(a.chain[0].NotAfter)) {
		return a.server.tls, nil
	}
	issued, err := a.issueServer()
	if err != nil {
		return nil, fmt.Errorf("issue the broker's certificate: %w", err)
	}
	a.server = issued
	return issued.tls, nil
}

func (a *Authority) issueServer() (serverCertificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return serverCertificate{}, err
	}
	leaf, err := a.sign(a.serverTemplate(), key.Public())
	if err != nil {
		return serverCertificate{}, err
	}
	shown := &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
	for _, c := range a.intermediates() {
		shown.Certificate = append(shown.Certificate, c.Raw)
	}
	return serverCertificate{tls: shown, expiresAt: leaf.NotAfter}, nil
}

// serverTemplate returns the template of the broker's certificate.
func (a *Authority) serverTemplate() *x509.Certificate {
	names, addresses := hostNames(a.cfg.Hosts)
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: "hubcloud broker"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    names,
		IPAddresses: addresses,
	}
}

// intermediates returns the certificates to send after a certificate of the authority: its chain
// without self-signed certificates, which clients must have already.
func (a *Authority) intermediates() []*x509.Certificate {
	return slices.DeleteFunc(
		slices.Clone(a.chain),
		func(c *x509.Certificate) bool { return c.CheckSignatureFrom(c) == nil },
	)
}

// hostNames splits hosts, and the names of the local machine, into names and addresses. It drops
// wildcard addresses and duplicates.
func hostNames(hosts []string) (names []string, addresses []net.IP) {
	for _, host := range append([]string{"localhost", "127.0.0.1", "::1"}, hosts...) {
		address := net.ParseIP(host)
		switch {
		case host == "" || address != nil && address.IsUnspecified():
		case address == nil && !slices.Contains(names, host):
			names = append(names, host)
		case address != nil && !slices.ContainsFunc(addresses, address.Equal):
			addresses = append(addresses, address)
		}
	}
	return names, addresses
}
