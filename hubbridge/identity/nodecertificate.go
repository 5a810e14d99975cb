package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"time"
)

// NodeCertificate is a certificate with its key, in PEM, for the servers of a broker of one's own.
type NodeCertificate struct {
	Certificate, Key []byte
	ExpiresAt        time.Time
}

// IssueNode issues the certificate of a broker of one's own: as ServerTLS shows it, for the same
// hosts, and good for its servers to know each other by as well.
func (a *Authority) IssueNode() (NodeCertificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return NodeCertificate{}, fmt.Errorf("issue the broker's certificate: %w", err)
	}
	template := a.serverTemplate()
	template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	leaf, err := a.sign(template, key.Public())
	if err != nil {
		return NodeCertificate{}, fmt.Errorf("issue the broker's certificate: %w", err)
	}
	text, err := encodePrivateKey(key)
	if err != nil {
		return NodeCertificate{}, fmt.Errorf("issue the broker's certificate: %w", err)
	}
	return NodeCertificate{
		Certificate: encodeCertificates(append([]*x509.Certificate{leaf}, a.intermediates()...)...),
		Key:         text,
		ExpiresAt:   leaf.NotAfter,
	}, nil
}
