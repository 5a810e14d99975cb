package identity

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
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
	"hubcloud/streams/disk"
)

const (
	authorityKeyFile         = "ca-key.pem"
	authorityCertificateFile = "ca.pem"

	// authorityLife is long because hubs get another authority's certificate only when they enrol
	// again.
	authorityLife = 30 * 365 * 24 * time.Hour
	// authorityWarning is the remaining life of an authority at which a warning is logged. Hub
	// certificates cannot outlive their authority.
	authorityWarning = 2 * certificateLife
	// certificateLife is the life of the certificates of hubs and of the broker.
	certificateLife = 365 * 24 * time.Hour
	// clockSkew is how far a peer's clock may be behind without rejecting a new certificate.
	clockSkew = 10 * time.Minute
)

// AuthorityConfig configures an Authority. Dir, or CertificateFile and KeyFile, are required.
type AuthorityConfig struct {
	// Dir is the directory of the service's own authority: ca.pem and ca-key.pem. They are created
	// if they do not exist. Unused with an external authority.
	Dir string
	// CertificateFile and KeyFile are the paths (PEM) of an external authority. The first
	// certificate is the authority's, followed by the certificates of the authorities above it. The
	// key must not be encrypted. Both or neither must be set. Default to the service's own
	// authority.
	CertificateFile, KeyFile string
	// AlsoFile is the path (PEM) of the certificates of further authorities, used while one
	// authority replaces another. Enrolled hubs trust them too, and certificates issued
	// by them are accepted while they are current. Defaults to none.
	AlsoFile string
	// Hosts are the names and addresses of the broker for hubs, in addition to localhost, 127.0.0.1
	// and ::1.
	Hosts []string
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
	// Logger receives a warning when the authority expires soon. Defaults to slog.Default().
	Logger *slog.Logger
	// Metrics registers the expiry times of certificates. Defaults to none.
	Metrics prometheus.Registerer
}

// WithDefaults returns a copy with defaults in place of zero values.
func (c AuthorityConfig) WithDefaults() AuthorityConfig {
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// Validate returns an error that names the first invalid field. It does not read the files.
func (c AuthorityConfig) Validate() error {
	switch {
	case (c.CertificateFile == "") != (c.KeyFile == ""):
		return errors.New("authority: CertificateFile and KeyFile: must be given together")
	case c.CertificateFile == "" && c.Dir == "":
		return errors.New("authority: Dir: must be set, or CertificateFile and KeyFile")
	}
	return nil
}

// Authority is the installation's certificate authority. It issues the certificates of the broker
// and of hubs. It is safe for concurrent use.
type Authority struct {
	cfg AuthorityConfig
	// chain is the certificates of the authority and of the authorities above it. The last may be
	// self-signed.
	chain []*x509.Certificate
	key   crypto.Signer
	// also are the further authorities of AlsoFile.
	also []*x509.Certificate
	pool *x509.CertPool

	serverMu sync.Mutex
	server   serverCertificate
}

// OpenAuthority opens the configured authority, or creates the service's own. It returns an error
// if only the authority's certificate exists: a new authority would lock out all hubs.
func OpenAuthority(cfg AuthorityConfig) (*Authority, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	a := &Authority{cfg: cfg}
	var err error
	if cfg.CertificateFile != "" {
		err = a.load(cfg.CertificateFile, cfg.KeyFile)
	} else {
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
	a.register(cfg.Metrics)
	return a, nil
}

// openOwn opens or creates the service's own authority. It writes the key before the certificate: a
// crash in between leaves a key without a certificate, which is then created again, since no hub
// has seen the first. A certificate without a key is never caused by a crash.
func (a *Authority) openOwn() error {
	certificate := filepath.Join(a.cfg.Dir, authorityCertificateFile)
	key := filepath.Join(a.cfg.Dir, authorityKeyFile)
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
	if err := disk.Write(key, text, 0o600); err != nil {
		return err
	}
	if err := disk.Write(certificate, encodeCertificates(made), 0o600); err != nil {
		return err
	}
	a.chain, a.key = []*x509.Certificate{made}, signer
	return nil
}

func newAuthorityCertificate(key crypto.Signer, now time.Time) (*x509.Certificate, error) {
	serial := newSerial()
	template := &x509.Certificate{
		SerialNumber: serial,
		// The name is unique, since some clients look up authorities by name.
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

// DeriveKey returns 32 bytes that only the authority's key leads to, and that differ for each
// purpose.
func (a *Authority) DeriveKey(purpose string) ([]byte, error) {
	secret, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		return nil, err
	}
	return hkdf.Key(sha256.New, secret, nil, purpose, 32)
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

// loadAlso reads the further authorities. Expired ones are an error.
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
			return fmt.Errorf("%s: %s is not the certificate of an authority", file, other.Subject)
		case a.cfg.Now().After(other.NotAfter):
			return fmt.Errorf(
				"%s: %s expired on %s: remove it", file, other.Subject,
				other.NotAfter.Format(time.DateOnly),
			)
		case !slices.ContainsFunc(a.chain, other.Equal):
			a.also = append(a.also, other)
		}
	}
	return nil
}

func isAuthority(c *x509.Certificate) bool {
	return c.BasicConstraintsValid && c.IsCA && (c.KeyUsage == 0 || c.KeyUsage&x509.KeyUsageCertSign != 0)
}

// check returns an error if certificate and key are not a valid authority. It logs a warning if the
// authority expires soon.
func (a *Authority) check() error {
	certificate, now := a.chain[0], a.cfg.Now()
	public, ok := a.key.Public().(interface{ Equal(crypto.PublicKey) bool })
	switch {
	case !ok || !public.Equal(certificate.PublicKey):
		return errors.New("authority: the key does not belong to the certificate")
	case !certificate.BasicConstraintsValid || !certificate.IsCA:
		return errors.New(
			"authority: the certificate is not an authority's (basic constraints)",
		)
	case certificate.KeyUsage != 0 && certificate.KeyUsage&x509.KeyUsageCertSign == 0:
		return errors.New(
			"authority: the certificate does not allow signing certificates (key usage)",
		)
	case now.After(certificate.NotAfter):
		return fmt.Errorf(
			"authority: the certificate expired on %s", certificate.NotAfter.Format(time.DateOnly),
		)
	}
	if certificate.NotAfter.Sub(now) < authorityWarning {
		a.cfg.Logger.Warn(
			"certificate authority expires soon; replace it before",
			"subject", certificate.Subject.String(),
			"expires_at", domain.FormatTime(certificate.NotAfter),
		)
	}
	return nil
}

// CAPEM returns the certificates (PEM) that hubs must trust: the authority's chain and the further
// authorities.
func (a *Authority) CAPEM() []byte {
	return encodeCertificates(append(slices.Clone(a.chain), a.also...)...)
}

// Issued is a certificate issued by an Authority.
type Issued struct {
	// PEM is the certificate.
	PEM []byte
	// Fingerprint is the SHA-256 of its DER form, in lower-case hexadecimal.
	Fingerprint string
	ExpiresAt   time.Time
}

// IssueHub issues the certificate of a hub for its public key. The common name of its subject is
// the hub id. It is a client certificate, valid for a year or until the authority expires.
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

// sign sets the fields that all certificates have in common and signs the certificate.
func (a *Authority) sign(
	template *x509.Certificate, key crypto.PublicKey,
) (*x509.Certificate, error) {
	now := a.cfg.Now()
	template.SerialNumber = newSerial()
	template.NotBefore = now.Add(-clockSkew)
	template.NotAfter = now.Add(certificateLife)
	template.BasicConstraintsValid = true
	// Some clients reject a certificate that outlives its authority.
	if end := a.chain[0].NotAfter; template.NotAfter.After(end) {
		template.NotAfter = end
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.chain[0], key, a.key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// newSerial returns a random positive serial number of exactly 16 bytes.
func newSerial() *big.Int {
	var entropy [16]byte
	rand.Read(entropy[:]) // never returns an error
	entropy[0] = entropy[0]&0x7f | 0x40
	return new(big.Int).SetBytes(entropy[:])
}

// fingerprint returns the SHA-256 of a certificate in lower-case hexadecimal.
func fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}
