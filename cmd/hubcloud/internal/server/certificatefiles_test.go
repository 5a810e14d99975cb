package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/acme/autocert"

	"hubcloud/streams/streamstest"
)

// newPair returns a certificate with a serial number, and its key.
func newPair(t *testing.T, serial int64, end time.Time) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	streamstest.Must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), DNSNames: []string{"hubs.example.org"},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: end,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	streamstest.Must(t, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	streamstest.Must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

// pairFiles are the files of a certificate, which are being watched.
type pairFiles struct {
	certificate, key string
	log              streamstest.LogLines
	ends             chan time.Time
	*certificateFiles
}

// write replaces the files.
func (f *pairFiles) write(t *testing.T, certificate, key []byte) {
	t.Helper()
	streamstest.Must(t, errors.Join(
		os.WriteFile(f.certificate, certificate, 0o600), os.WriteFile(f.key, key, 0o600),
	))
}

// serial returns the serial number of the certificate in use.
func (f *pairFiles) serial(t *testing.T) int64 {
	t.Helper()
	shown, err := f.TLS().GetCertificate(nil)
	streamstest.Must(t, err)
	return shown.Leaf.SerialNumber.Int64()
}

// watchPair writes a pair, opens it, and watches it until the end of the test.
func watchPair(t *testing.T, certificate, key []byte) *pairFiles {
	t.Helper()
	dir := t.TempDir()
	f := &pairFiles{
		certificate: filepath.Join(dir, "tls.crt"), key: filepath.Join(dir, "tls.key"),
		ends: make(chan time.Time, 10),
	}
	f.write(t, certificate, key)
	var err error
	f.certificateFiles, err = openCertificateFiles(
		f.certificate, f.key, func(end time.Time) { f.ends <- end },
		f.log.Logger(),
	)
	streamstest.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-stopped
	})
	return f
}

// TestFilesAreReadAgain replaces a pair by broken ones, which must not come into use, and by a good
// one.
func TestFilesAreReadAgain(t *testing.T) {
	t.Parallel()
	year := time.Now().AddDate(1, 0, 0)
	certificate, key := newPair(t, 1, year)
	f := watchPair(t, certificate, key)
	expired, expiredKey := newPair(t, 2, time.Now().Add(-time.Hour))
	_, foreign := newPair(t, 3, year)
	for name, broken := range map[string][2][]byte{
		"not PEM":     {[]byte("nothing"), foreign},
		"another key": {expired, foreign},
		"expired":     {expired, expiredKey},
	} {
		lines := strings.Count(f.log.String(), "not used")
		f.write(t, broken[0], broken[1])
		streamstest.Eventually(t, name+": a line in the log", func() bool {
			return strings.Count(f.log.String(), "not used") > lines
		})
		if got := f.serial(t); got != 1 {
			t.Errorf("%s: got certificate %d, want the former one, 1", name, got)
		}
	}
	certificate, key = newPair(t, 4, year.AddDate(1, 0, 0))
	f.write(t, certificate, key)
	streamstest.Eventually(t, "certificate 4 is in use", func() bool { return f.serial(t) == 4 })
	if first, second := <-f.ends, <-f.ends; !second.After(first) {
		t.Errorf("ends: got %s and %s, want the end of each certificate in use", first, second)
	}
}

// The service did not start with an expired certificate, so hubs and their events were cut off from
// it too. It starts, says so, and uses the next one.
func TestExpiredCertificateIsUsedAtTheStart(t *testing.T) {
	t.Parallel()
	certificate, key := newPair(t, 1, time.Now().Add(-time.Hour))
	f := watchPair(t, certificate, key)
	streamstest.Eventually(t, "an error in the log", func() bool {
		return strings.Contains(f.log.String(), `"level":"ERROR"`) &&
			strings.Contains(f.log.String(), "expired")
	})
	certificate, key = newPair(t, 2, time.Now().Add(time.Hour))
	f.write(t, certificate, key)
	streamstest.Eventually(t, "the next certificate is in use", func() bool { return f.serial(t) == 2 })
}

// What Put stores, the other methods find, and no name leads out of the folder.
func TestCache(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "acme")
	c := acmeCache{autocert.DirCache(folder)}
	for name, file := range map[string]string{
		"hubs.example.org": "hubs.example.org", "../x": "x", "acme_account+key": "acme_account+key",
	} {
		streamstest.Must(t, c.Put(t.Context(), name, []byte("k")))
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
	certificate, key := newPair(t, 1, time.Now().AddDate(1, 0, 0))
	f := watchPair(t, certificate, key)
	for suite, want := range map[uint16]bool{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA: false, tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA: false,
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: true,
	} {
		server, client := net.Pipe()
		shaken := make(chan error, 1)
		go func() { shaken <- errors.Join(tls.Server(server, f.TLS()).Handshake(), server.Close()) }()
		err := tls.Client(client, &tls.Config{
			InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite},
		}).Handshake()
		if err := errors.Join(err, client.Close(), <-shaken); (err == nil) != want {
			t.Errorf("%s: got %v, want it accepted: %t", tls.CipherSuiteName(suite), err, want)
		}
	}
}
