package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"hubcloud/streams"
)

// filesInterval is the time between two looks at the files.
const filesInterval = 2 * time.Second

// certificateFiles is a certificate in files, which are read again when they change. A new
// certificate that cannot be used never replaces one that can.
type certificateFiles struct {
	certificate, key string
	logger           *slog.Logger
	expiry           func(time.Time)
	current          atomic.Pointer[tls.Certificate]
	// read is the sum of the files that were read last.
	read [sha256.Size]byte
}

// expiredInterval is the time between two log lines about an expired certificate in use.
const expiredInterval = time.Hour

// openCertificateFiles reads a certificate with its chain, and its key, from PEM files. The error
// names the file or what is wrong with the pair. A certificate that has expired is used all the
// same, since hubs do not need it, and Run logs that it has. expiry is called with the end of each
// certificate that comes into use.
func openCertificateFiles(
	certificateFile, keyFile string, expiry func(time.Time), logger *slog.Logger,
) (*certificateFiles, error) {
	f := &certificateFiles{
		certificate: certificateFile, key: keyFile, logger: logger, expiry: expiry,
	}
	certificate, key, err := f.contents()
	if err != nil {
		return nil, err
	}
	f.read = pairSum(certificate, key)
	pair, err := f.parse(certificate, key)
	if err != nil {
		return nil, err
	}
	f.use(pair)
	return f, nil
}

// TLS returns the configuration for a listener. It has the newest certificate at each handshake.
func (f *certificateFiles) TLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, CipherSuites: streams.CipherSuites(),
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return f.current.Load(), nil
		},
	}
}

// Run reads the files again when their content changes, until ctx ends. It keeps the current
// certificate while the files are missing, invalid, expired or do not belong together. It logs each
// hour that the certificate in use has expired.
func (f *certificateFiles) Run(ctx context.Context) error {
	ticker := time.NewTicker(filesInterval)
	defer ticker.Stop()
	var failed [sha256.Size]byte
	expired := rate.Sometimes{First: 1, Interval: expiredInterval}
	for {
		if end := f.current.Load().Leaf.NotAfter; time.Now().After(end) {
			expired.Do(func() {
				f.logger.Error(
					"the HTTPS certificate has expired: browsers and API clients reject it, and "+
						"hubs that enrol; replace the file, which is then read again",
					"file", f.certificate, "expired_at", end,
				)
			})
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		certificate, key, err := f.contents()
		seen := pairSum(certificate, key)
		if err == nil && seen == f.read {
			continue
		}
		var pair *tls.Certificate
		if err == nil {
			pair, err = f.parse(certificate, key)
		}
		if err == nil && time.Now().After(pair.Leaf.NotAfter) {
			end := pair.Leaf.NotAfter.UTC().Format(time.DateOnly)
			err = fmt.Errorf("%s: expired on %s", f.certificate, end)
		}
		switch {
		case err == nil:
			f.use(pair)
			f.read, failed = seen, [sha256.Size]byte{}
			f.logger.Info(
				"certificate replaced", "file", f.certificate,
				"expires_at", f.current.Load().Leaf.NotAfter,
			)
		case seen != failed:
			// A pair is replaced file by file; one line for each state of the files.
			failed = seen
			f.logger.Warn("new certificate not used; the former one stays", "error", err)
		}
	}
}

// contents reads the files.
func (f *certificateFiles) contents() (certificate, key []byte, err error) {
	if certificate, err = os.ReadFile(f.certificate); err != nil {
		return nil, nil, fmt.Errorf("certificate: %w", err)
	}
	if key, err = os.ReadFile(f.key); err != nil {
		return nil, nil, fmt.Errorf("key: %w", err)
	}
	return certificate, key, nil
}

// parse returns a pair, if key and certificate belong together.
func (f *certificateFiles) parse(certificate, key []byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", f.certificate, f.key, err)
	}
	return &pair, nil
}

// use puts a pair into use.
func (f *certificateFiles) use(pair *tls.Certificate) {
	f.current.Store(pair)
	f.expiry(pair.Leaf.NotAfter)
}

func pairSum(certificate, key []byte) [sha256.Size]byte {
	return sha256.Sum256(bytes.Join([][]byte{certificate, key}, []byte{0}))
}
