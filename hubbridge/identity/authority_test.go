package identity_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubcloud/hubbridge/identity"
	"hubcloud/streams/streamstest"
)

const day = 24 * time.Hour

func openAuthority(t testing.TB, cfg identity.AuthorityConfig) *identity.Authority {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = streamstest.Logger()
	}
	a, err := identity.OpenAuthority(cfg)
	streamstest.Must(t, err)
	return a
}

// TestAuthorityIsCreatedOnce: the first start creates the authority, later starts load it, and only
// the owner of the files can read the key.
func TestAuthorityIsCreatedOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "ca")
	first := openAuthority(t, identity.AuthorityConfig{Dir: dir})
	second := openAuthority(t, identity.AuthorityConfig{Dir: dir})
	if !bytes.Equal(first.CAPEM(), second.CAPEM()) {
		t.Error("another authority at the second start")
	}
	ca := parseCertificate(t, string(first.CAPEM()))
	key, ok := ca.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() || !ca.IsCA || ca.KeyUsage != x509.KeyUsageCertSign|x509.KeyUsageCRLSign ||
		!ca.MaxPathLenZero {
		t.Errorf("the authority's certificate: %+v", ca)
	}
	for path, want := range map[string]os.FileMode{
		dir: 0o700 | os.ModeDir, dir + "/ca-key.pem": 0o600, dir + "/ca.pem": 0o600,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("%d files, %v", len(left), err)
	}
}

// TestIncompleteAuthority: for a key without a certificate, as a crash leaves it, a certificate is
// created. A certificate without its key is an error.
func TestIncompleteAuthority(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	openAuthority(t, identity.AuthorityConfig{Dir: dir})
	streamstest.Must(t, os.Remove(dir+"/ca.pem"))
	openAuthority(t, identity.AuthorityConfig{Dir: dir})
	streamstest.Must(t, os.Remove(dir+"/ca-key.pem"))
	if _, err := identity.OpenAuthority(identity.AuthorityConfig{Dir: dir}); err == nil ||
		!strings.Contains(err.Error(), "ca-key.pem") {
		t.Errorf("without the key: got %v, want an error that names ca-key.pem", err)
	}
}

// TestHubCertificate: a hub's certificate is as the hub protocol defines it.
func TestHubCertificate(t *testing.T) {
	t.Parallel()
	time0 := time.Date(2030, 1, 2, 3, 4, 5, 678, time.UTC)
	a := openAuthority(t, identity.AuthorityConfig{
		Dir: t.TempDir(), Now: func() time.Time { return time0 },
	})
	key := newKey(t)
	issued, err := a.IssueHub("hub-7k2m-q4xd-93ta", key.Public())
	streamstest.Must(t, err)
	c := parseCertificate(t, string(issued.PEM))
	if c.Subject.String() != "CN=hub-7k2m-q4xd-93ta" || len(c.DNSNames)+len(c.IPAddresses) > 0 || c.IsCA {
		t.Errorf("subject %s, names %v %v, CA %t", c.Subject, c.DNSNames, c.IPAddresses, c.IsCA)
	}
	if len(c.ExtKeyUsage) != 1 || c.ExtKeyUsage[0] != x509.ExtKeyUsageClientAuth ||
		c.KeyUsage != x509.KeyUsageDigitalSignature {
		t.Errorf("usage %v %v", c.KeyUsage, c.ExtKeyUsage)
	}
	if want := time0.Add(365 * day).Truncate(time.Second); !c.NotAfter.Equal(want) || !issued.ExpiresAt.Equal(want) ||
		c.NotBefore.After(time0) {
		t.Errorf("from %v to %v, said %v", c.NotBefore, c.NotAfter, issued.ExpiresAt)
	}
	if c.SerialNumber.Sign() <= 0 || c.SerialNumber.BitLen() < 120 {
		t.Errorf("serial %v", c.SerialNumber)
	}
	again, err := a.IssueHub("hub-7k2m-q4xd-93ta", key.Public())
	if err != nil || again.Fingerprint == issued.Fingerprint {
		t.Errorf("two certificates with one fingerprint, %v", err)
	}
}

// TestServerCertificate: the broker's certificate has the configured names, verifies, and is
// renewed a month before it expires.
func TestServerCertificate(t *testing.T) {
	t.Parallel()
	var now streamstest.Clock
	a := openAuthority(t, identity.AuthorityConfig{
		Dir:   t.TempDir(),
		Hosts: []string{"hubs.example.org", "192.0.2.7", "localhost", "0.0.0.0", "::", ""},
		Now:   now.Now,
	})
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.CAPEM())
	shown := func() *x509.Certificate {
		t.Helper()
		certificate, err := a.ServerTLS().GetCertificate(nil)
		streamstest.Must(t, err)
		for _, host := range []string{
			"localhost", "127.0.0.1", "::1", "hubs.example.org", "192.0.2.7",
		} {
			if _, err := certificate.Leaf.Verify(x509.VerifyOptions{
				Roots: roots, DNSName: host, CurrentTime: now.Now(),
			}); err != nil {
				t.Errorf("%s: %v", host, err)
			}
		}
		if len(certificate.Certificate) != 1 {
			t.Errorf(
				"shows %d certificates, though hubs have the authority's",
				len(certificate.Certificate),
			)
		}
		return certificate.Leaf
	}
	first := shown()
	if len(first.DNSNames) != 2 || len(first.IPAddresses) != 3 {
		t.Errorf("names %v, addresses %v", first.DNSNames, first.IPAddresses)
	}
	now.Advance(330 * day)
	if !shown().Equal(first) {
		t.Error("renewed 35 days before its end")
	}
	now.Advance(10 * day)
	second := shown()
	if second.Equal(first) {
		t.Error("not renewed 25 days before its end")
	}
	if !shown().Equal(second) {
		t.Error("renewed again at once")
	}
}

// external writes the files of an operator's authority, an intermediate certificate below a root,
// and returns a configuration with them. The root's key is not among the files.
func external(
	t *testing.T, notAfter time.Time, edit func(*x509.Certificate),
) identity.AuthorityConfig {
	t.Helper()
	rootKey, key := newKey(t), newKey(t)
	template := func(name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(1),
			Subject:      pkix.Name{CommonName: name},
			NotBefore:    time.Now().Add(-time.Hour), NotAfter: notAfter,
			IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		}
	}
	root, intermediate := template("Root"), template("Hubs")
	edit(intermediate)
	rootDER, err := x509.CreateCertificate(rand.Reader, root, root, rootKey.Public(), rootKey)
	streamstest.Must(t, err)
	der, err := x509.CreateCertificate(rand.Reader, intermediate, root, key.Public(), rootKey)
	streamstest.Must(t, err)
	keyDER, err := x509.MarshalECPrivateKey(key.(*ecdsa.PrivateKey))
	streamstest.Must(t, err)
	dir := t.TempDir()
	cfg := identity.AuthorityConfig{
		CertificateFile: dir + "/external.pem",
		KeyFile:         dir + "/external-key.pem",
		Logger:          streamstest.Logger(),
	}
	write(
		t, cfg.CertificateFile,
		append(pemBlock("CERTIFICATE", der), pemBlock("CERTIFICATE", rootDER)...),
	)
	write(t, cfg.KeyFile, pemBlock("EC PRIVATE KEY", keyDER))
	return cfg
}

func pemBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	streamstest.Must(t, os.WriteFile(path, content, 0o600))
}

// TestExternalAuthority: hubs and the broker can verify each other by the chain of an operator's
// authority.
func TestExternalAuthority(t *testing.T) {
	t.Parallel()
	end := time.Now().Add(100 * day)
	a := openAuthority(t, external(t, end, func(*x509.Certificate) {}))
	config := hubTLS(t, a)
	config.VerifyConnection = func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) != 2 {
			return fmt.Errorf("the broker sent %d certificates, want its own and the intermediate one",
				len(s.PeerCertificates))
		}
		return nil
	}
	if err := shake(config, a.ServerTLS()); err != nil {
		t.Error(err)
	}
	issued, err := x509.ParseCertificate(config.Certificates[0].Certificate[0])
	streamstest.Must(t, err)
	if issued.NotAfter.After(end) {
		t.Errorf("lasts until %v, longer than its authority", issued.NotAfter)
	}
}

// TestInvalidAuthorities: the error of an invalid authority has the file and the reason.
func TestInvalidAuthorities(t *testing.T) {
	t.Parallel()
	far := time.Now().Add(1000 * day)
	nothing := func(*x509.Certificate) {}
	for what, c := range map[string]struct {
		cfg  identity.AuthorityConfig
		want string
	}{
		"a certificate that is no authority": {
			external(t, far, func(c *x509.Certificate) { c.IsCA = false }),
			"not an authority's",
		},
		"not for signing certificates": {
			external(t, far, func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageCRLSign }),
			"does not allow signing",
		},
		"expired": {external(t, time.Now().Add(-time.Minute), nothing), "expired on"},
		"the key of another authority": {identity.AuthorityConfig{
			CertificateFile: external(t, far, nothing).CertificateFile,
			KeyFile:         external(t, far, nothing).KeyFile,
		}, "does not belong to the certificate"},
		"a certificate without a key": {
			identity.AuthorityConfig{CertificateFile: external(t, far, nothing).CertificateFile},
			"must be given together",
		},
		"files swapped": {swapped(external(t, far, nothing)), "only certificates are allowed"},
		"empty files": {
			identity.AuthorityConfig{CertificateFile: "/dev/null", KeyFile: "/dev/null"},
			"contains no PEM certificate",
		},
	} {
		c.cfg.Logger = streamstest.Logger()
		if _, err := identity.OpenAuthority(c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", what, err, c.want)
		}
	}
}

func swapped(c identity.AuthorityConfig) identity.AuthorityConfig {
	c.CertificateFile, c.KeyFile = c.KeyFile, c.CertificateFile
	return c
}

// TestAuthorityExpiryIsLogged: a warning is logged two years before an authority expires.
func TestAuthorityExpiryIsLogged(t *testing.T) {
	t.Parallel()
	for days, want := range map[int]bool{700: true, 760: false} {
		var lines bytes.Buffer
		cfg := external(t, time.Now().Add(time.Duration(days)*day), func(*x509.Certificate) {})
		cfg.Logger = slog.New(slog.NewTextHandler(&lines, nil))
		openAuthority(t, cfg)
		if got := strings.Contains(lines.String(), "level=WARN"); got != want {
			t.Errorf("%d days before: warned %t, want %t:\n%s", days, got, want, lines.String())
		}
	}
}
