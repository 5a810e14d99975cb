package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"time"
)

// NodeCertificate is the certificate and key, in PEM, of an external broker.
type NodeCertificate struct {
	Certificate, Key []byte
	ExpiresAt        time.Time
}

// IssueNode issues the certificate of an external broker: as in ServerTLS, for the same hosts,
// which the servers of a cluster can also use as a client certificate among themselves.
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
