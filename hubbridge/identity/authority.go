package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/streams/durablefile"
)

const (
	authorityKeyFile         = "ca-key.pem"
	authorityCertificateFile = "ca.pem"

	// authorityLife is long because every hub holds the authority's certificate, and there is no
	// way to tell them of another.
	authorityLife = 30 * 365 * 24 * time.Hour
	// authorityWarning is how early the log says that an authority ends: hub certificates cannot
	// outlive it.
	authorityWarning = 2 * certificateLife
	// certificateLife is how long certificates of hubs and of the broker last.
	certificateLife = 365 * 24 * time.Hour
	// clockSkew is how far a clock may be behind the service's and still take a certificate that
	// was issued just now.
	clockSkew = 10 * time.Minute
)

// AuthorityConfig says where the certificate authority is, and for whom it vouches.
type AuthorityConfig struct {
	// Dir holds the authority that the service makes for itself on first start: ca.pem and
	// ca-key.pem. Made if absent.
	Dir string
	// CertificateFile and KeyFile name an authority of the operator's instead: PEM; the certificate
	// first, any that vouch for it after it; the key without a password. Both or neither.
	CertificateFile, KeyFile string
	// AlsoFile names further authorities' certificates, PEM, while one authority takes the place of
	// another: hubs are told to trust them too, and a certificate that one of them issued counts as
	// long as it is the hub's current one. None when empty.
	AlsoFile string
	// Hosts are the names and addresses under which hubs reach the broker, beside localhost,
	// 127.0.0.1 and ::1.
	Hosts []string
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Log is where it says that the authority's end is near; nil is the default logger.
	Log *slog.Logger
	// Metrics gets when certificates end; nil registers none.
	Metrics prometheus.Registerer
}

// Authority is the installation's certificate authority: it signs the broker's certificate and the
// hubs'. It is safe for concurrent use.
type Authority struct {
	cfg AuthorityConfig
	// chain is the authority's certificate and those that vouch for it; the last may be
	// self-signed.
	chain []*x509.Certificate
	key   crypto.Signer
	// also are the authorities that were, or will be.
	also []*x509.Certificate
	pool *x509.CertPool

	serverMu sync.Mutex
	server   serverCertificate
}

// OpenAuthority opens the authority, and makes one if there is none and none is given. An authority
// of which only the certificate is left is an error: a new one would lock out every hub.
func OpenAuthority(cfg AuthorityConfig) (*Authority, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	a := &Authority{cfg: cfg}
	var err error
	switch {
	case (cfg.CertificateFile == "") != (cfg.KeyFile == ""):
		err = errors.New("give both the authority's certificate and its key, or neither")
	case cfg.CertificateFile != "":
		err = a.load(cfg.CertificateFile, cfg.KeyFile)
	default:
		err = a.openOwn()
	}
	if err == nil {
		err = a.check()
	}
	if err == nil && cfg.AlsoFile != "" {
		err = a.loadAlso(cfg.AlsoFile)
	}
	if err != nil {
		return nil, err
	}
	a.pool = x509.NewCertPool()
	a.pool.AddCert(a.chain[0])
	for _, other := range a.also {
		a.pool.AddCert(other)
	}
	if cfg.Metrics != nil {
		a.register(cfg.Metrics)
	}
	return a, nil
}

// openOwn opens the service's own authority. The key is written before the certificate, so that a
// certificate without a key is no crash's doing: a key without a certificate is, and the
// certificate is made anew before anyone has seen the first.
func (a *Authority) openOwn() error {
	certificate, key := filepath.Join(a.cfg.Dir, authorityCertificateFile), filepath.Join(a.cfg.Dir, authorityKeyFile)
	if _, err := os.Stat(certificate); !errors.Is(err, fs.ErrNotExist) {
		return a.load(certificate, key)
	}
	if err := os.MkdirAll(a.cfg.Dir, 0o700); err != nil {
		return err
	}
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	made, err := newAuthorityCertificate(signer, a.cfg.Now())
	if err != nil {
		return err
	}
	text, err := encodePrivateKey(signer)
	if err != nil {
		return err
	}
	if err := durablefile.Write(key, text, 0o600); err != nil {
		return err
	}
	if err := durablefile.Write(certificate, encodeCertificates(made), 0o600); err != nil {
		return err
	}
	a.chain, a.key = []*x509.Certificate{made}, signer
	return nil
}

func newAuthorityCertificate(key crypto.Signer, now time.Time) (*x509.Certificate, error) {
	serial := newSerial()
	template := &x509.Certificate{
		SerialNumber: serial,
		// Installations must not be taken for one another by clients that look authorities up by
		// name.
		Subject: pkix.Name{
			CommonName: "hubcloud authority " + hex.EncodeToString(serial.Bytes()[:4]),
		},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(authorityLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func (a *Authority) load(certificateFile, keyFile string) error {
	text, err := os.ReadFile(certificateFile)
	if err != nil {
		return err
	}
	if a.chain, err = parseCertificates(text); err != nil {
		return fmt.Errorf("%s %w", certificateFile, err)
	}
	if text, err = os.ReadFile(keyFile); err != nil {
		return err
	}
	if a.key, err = parsePrivateKey(text); err != nil {
		return fmt.Errorf("%s %w", keyFile, err)
	}
	return nil
}

// loadAlso reads the other authorities. One that has ended vouches for nothing any more.
func (a *Authority) loadAlso(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	others, err := parseCertificates(text)
	if err != nil {
		return fmt.Errorf("%s %w", file, err)
	}
	for _, other := range others {
		switch {
		case !isAuthority(other):
			return fmt.Errorf("%s: %s is no certificate of an authority", file, other.Subject)
		case a.cfg.Now().After(other.NotAfter):
			return fmt.Errorf(
				"%s: %s ended on %s: leave it out", file, other.Subject,
				other.NotAfter.Format(time.DateOnly),
			)
		case !slices.ContainsFunc(a.chain, other.Equal):
			a.also = append(a.also, other)
		}
	}
	return nil
}

func isAuthority(c *x509.Certificate) bool {
	return c.BasicConstraintsValid && c.IsCA &&
		(c.KeyUsage == 0 || c.KeyUsage&x509.KeyUsageCertSign != 0)
}

// check says why a pair of certificate and key is no authority, and warns when its end is near.
func (a *Authority) check() error {
	certificate, now := a.chain[0], a.cfg.Now()
	public, ok := a.key.Public().(interface{ Equal(crypto.PublicKey) bool })
	switch {
	case !ok || !public.Equal(certificate.PublicKey):
		return errors.New("the key is not that of the certificate")
	case !certificate.BasicConstraintsValid || !certificate.IsCA:
		return errors.New("the certificate is not an authority's (basic constraints)")
	case certificate.KeyUsage != 0 && certificate.KeyUsage&x509.KeyUsageCertSign == 0:
		return errors.New("the certificate is not for signing certificates (key usage)")
	case now.After(certificate.NotAfter):
		return fmt.Errorf("the certificate ended on %s", certificate.NotAfter.Format(time.DateOnly))
	}
	if certificate.NotAfter.Sub(now) < authorityWarning {
		a.cfg.Log.Warn(
			"the certificate authority ends: hubs need another one before",
			"subject", certificate.Subject.String(),
			"expires_at", domain.FormatTime(certificate.NotAfter),
		)
	}
	return nil
}

// CAPEM is the authority's certificate, with those that vouch for it, and the other authorities:
// what hubs check the broker's certificate against.
func (a *Authority) CAPEM() []byte {
	return encodeCertificates(append(slices.Clone(a.chain), a.also...)...)
}

// Issued is a certificate that an authority issued.
type Issued struct {
	// PEM is the certificate.
	PEM []byte
	// Fingerprint is the SHA-256 of its DER form, in lower-case hexadecimal digits.
	Fingerprint string
	ExpiresAt   time.Time
}

// IssueHub issues a hub's certificate: its subject's common name is the hub id, whatever the hub
// asked for; it is good for connecting as a client for a year, or as long as the authority itself
// if that is less.
func (a *Authority) IssueHub(hub domain.HubID, key crypto.PublicKey) (Issued, error) {
	certificate, err := a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: string(hub)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, key)
	if err != nil {
		return Issued{}, fmt.Errorf("issue a certificate for %s: %w", hub, err)
	}
	return Issued{
		PEM:         encodeCertificates(certificate),
		Fingerprint: fingerprint(certificate.Raw),
		ExpiresAt:   certificate.NotAfter,
	}, nil
}

// sign completes a template with what every certificate has, and signs it.
func (a *Authority) sign(
	template *x509.Certificate, key crypto.PublicKey,
) (*x509.Certificate, error) {
	now := a.cfg.Now()
	template.SerialNumber = newSerial()
	template.NotBefore = now.Add(-clockSkew)
	template.NotAfter = now.Add(certificateLife)
	template.BasicConstraintsValid = true
	// One that outlives its authority is refused by some clients from the first day.
	if end := a.chain[0].NotAfter; template.NotAfter.After(end) {
		template.NotAfter = end
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.chain[0], key, a.key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// newSerial gives 127 random bits with the highest set: never zero, never negative, always 16
// bytes.
func newSerial() *big.Int {
	var entropy [16]byte
	rand.Read(entropy[:]) // never fails: it ends the program instead
	entropy[0] = entropy[0]&0x7f | 0x40
	return new(big.Int).SetBytes(entropy[:])
}

func fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}
