package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/crypto/acme/autocert"

	"hubcloud/streams/streamstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newPair returns a certificate with a serial number, and its key.
func newPair(t *testing.T, serial int64, end time.Time) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), DNSNames: []string{"hubs.example.org"},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: end,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// TestFilesAreReadAgain replaces a pair by broken ones, which must not come into use, and by a good
// one.
func TestFilesAreReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := FilesConfig{
		Certificate: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"),
	}
	write := func(certificate, key []byte) {
		t.Helper()
		for path, content := range map[string][]byte{cfg.Certificate: certificate, cfg.Key: key} {
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	year := time.Now().AddDate(1, 0, 0)
	write(newPair(t, 1, year))
	var log lockedBuffer
	ends := make(chan time.Time, 10)
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	cfg.Expiry = func(end time.Time) { ends <- end }
	files, err := OpenFiles(cfg)
	if err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	ctx := t.Context()
	go func() { stopped <- files.Run(ctx) }()
	t.Cleanup(func() { <-stopped })
	serial := func() int64 {
		shown, err := files.TLS().GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return shown.Leaf.SerialNumber.Int64()
	}
	expired, expiredKey := newPair(t, 2, time.Now().Add(-time.Hour))
	_, foreign := newPair(t, 3, year)
	for name, broken := range map[string][2][]byte{
		"not PEM":     {[]byte("nothing"), foreign},
		"another key": {expired, foreign},
		"expired":     {expired, expiredKey},
	} {
		lines := strings.Count(log.String(), "not used")
		write(broken[0], broken[1])
		streamstest.Eventually(t, name+": a line in the log", func() bool {
			return strings.Count(log.String(), "not used") > lines
		})
		if got := serial(); got != 1 {
			t.Errorf("%s: got certificate %d, want the former one, 1", name, got)
		}
	}
	write(newPair(t, 4, year.AddDate(1, 0, 0)))
	streamstest.Eventually(t, "certificate 4 is in use", func() bool { return serial() == 4 })
	if first, second := <-ends, <-ends; !second.After(first) {
		t.Errorf("ends: got %s and %s, want the end of each certificate in use", first, second)
	}
}

// The service did not start with an expired certificate, so hubs and their events were cut off from
// it too. It starts, says so, and uses the next one.
func TestExpiredCertificateIsUsedAtTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var log lockedBuffer
	cfg := FilesConfig{
		Certificate: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"),
		Expiry: func(time.Time) {}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}
	write := func(certificate, key []byte) {
		t.Helper()
		for path, content := range map[string][]byte{cfg.Certificate: certificate, cfg.Key: key} {
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(newPair(t, 1, time.Now().Add(-time.Hour)))
	files, err := OpenFiles(cfg)
	if err != nil {
		t.Fatalf("OpenFiles: got %v, want nil", err)
	}
	stopped := make(chan error, 1)
	ctx := t.Context()
	go func() { stopped <- files.Run(ctx) }()
	t.Cleanup(func() { <-stopped })
	streamstest.Eventually(t, "an error in the log", func() bool {
		return strings.Contains(log.String(), "level=ERROR") &&
			strings.Contains(log.String(), "expired")
	})
	write(newPair(t, 2, time.Now().Add(time.Hour)))
	streamstest.Eventually(t, "the next certificate is in use", func() bool {
		shown, err := files.TLS().GetCertificate(nil)
		return err == nil && shown.Leaf.SerialNumber.Int64() == 2
	})
}

// What Put stores, the other methods find, and no name leads out of the folder.
func TestCache(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "acme")
	c := cache{autocert.DirCache(folder)}
	for name, file := range map[string]string{
		"hubs.example.org": "hubs.example.org", "../x": "x", "acme_account+key": "acme_account+key",
	} {
		if err := c.Put(t.Context(), name, []byte("k")); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Get(t.Context(), name); err != nil || string(got) != "k" {
			t.Errorf("Get of %q: got %q, %v, want k", name, got, err)
		}
		if info, err := os.Stat(filepath.Join(folder, file)); err != nil ||
			info.Mode().Perm() != 0o600 {
			t.Errorf("file of %q: got %v, %v, want mode 0600", name, info, err)
		}
	}
}

// TestCipherSuites: HTTPS accepted suites in CBC mode, which scanners report.
func TestCipherSuites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := FilesConfig{
		Certificate: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"),
		Logger: streamstest.Logger(), Expiry: func(time.Time) {},
	}
	certificate, key := newPair(t, 1, time.Now().AddDate(1, 0, 0))
	if err := errors.Join(
		os.WriteFile(cfg.Certificate, certificate, 0o600), os.WriteFile(cfg.Key, key, 0o600),
	); err != nil {
		t.Fatal(err)
	}
	files, err := OpenFiles(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for suite, want := range map[uint16]bool{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA: false, tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA: false,
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: true,
	} {
		server, client := net.Pipe()
		shaken := make(chan error, 1)
		go func() { shaken <- errors.Join(tls.Server(server, files.TLS()).Handshake(), server.Close()) }()
		err := tls.Client(client, &tls.Config{
			InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite},
		}).Handshake()
		if err := errors.Join(err, client.Close(), <-shaken); (err == nil) != want {
			t.Errorf("%s: got %v, want it accepted: %t", tls.CipherSuiteName(suite), err, want)
		}
	}
}
