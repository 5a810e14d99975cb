package bench

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"testing"
	"time"
)

// authority signs certificates for the bare broker and its hubs, like those of the service's
// authority.
type authority struct {
	t           testing.TB
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
	pem         []byte
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t}
	template := &x509.Certificate{
		Subject: pkix.Name{
			CommonName: "bench",
		}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	der := a.sign(template, template, &a.key.PublicKey)
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

// sign returns a certificate in DER.
func (a *authority) sign(template, parent *x509.Certificate, public *ecdsa.PublicKey) []byte {
	a.t.Helper()
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber = serial
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return der
}

// issue returns a new key and its certificate with the given name.
func (a *authority) issue(name string, usage x509.ExtKeyUsage) (*ecdsa.PrivateKey, []byte) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return key, a.sign(&x509.Certificate{
		Subject: pkix.Name{
			CommonName: name,
		}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}, a.certificate, &key.PublicKey)
}

// broker starts a bare broker on a directory for its streams.
func (a *authority) broker(dir string, shards int) *bare {
	a.t.Helper()
	return a.startBroker(bareBrokerConfig{Dir: dir, Shards: shards})
}

// startBroker is broker with more settings. It sets the certificates.
func (a *authority) startBroker(config bareBrokerConfig) *bare {
	a.t.Helper()
	key, certificate := a.issue("broker", x509.ExtKeyUsageServerAuth)
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	config.Authority = string(a.pem)
	config.Certificate = string(
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
	)
	config.Key = string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
	return startBare(a.t, roleBroker, config)
}

// hubs creates hubs for a bare broker, each with its own certificate.
func (a *authority) hubs(b *bare, account func(id string) string, count int) []*hub {
	a.t.Helper()
	var made []*hub
	for i := range count {
		id := fmt.Sprintf("bench-bare-0000-%04d", i)
		key, certificate := a.issue(id, x509.ExtKeyUsageClientAuth)
		config, err := clientTLS(a.pem, certificate, key)
		if err != nil {
			a.t.Fatal(err)
		}
		made = append(
			made,
			&hub{
				ID:       id,
				broker:   b.ready.MQTT,
				tls:      config,
				user:     account(id),
				password: password,
				next:     firstNumber,
			},
		)
	}
	return made
}
