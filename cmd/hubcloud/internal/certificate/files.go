package certificate

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

	"hubcloud/streams"
)

// filesInterval is the time between two looks at the files.
const filesInterval = 2 * time.Second

// Files is a certificate in files.
type Files struct {
	certificate, key string
	logger           *slog.Logger
	expiry           func(time.Time)
	current          atomic.Pointer[tls.Certificate]
	// read is the sum of the files that were read last.
	read [sha256.Size]byte
}

// FilesConfig configures Files. Every field is required.
type FilesConfig struct {
	// Certificate is the path of the certificate and its chain (PEM), Key that of its key (PEM).
	Certificate, Key string
	// Expiry is called with the end of each certificate that comes into use.
	Expiry func(time.Time)
	Logger *slog.Logger
}

// OpenFiles reads the files. The error names the file or what is wrong with the pair.
func OpenFiles(cfg FilesConfig) (*Files, error) {
	f := &Files{
		certificate: cfg.Certificate, key: cfg.Key, logger: cfg.Logger, expiry: cfg.Expiry,
	}
	certificate, key, err := f.contents()
	if err != nil {
		return nil, err
	}
	f.read = sum(certificate, key)
	return f, f.use(certificate, key)
}

// TLS returns the configuration for a listener. It has the newest certificate at each handshake.
func (f *Files) TLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, CipherSuites: streams.CipherSuites(),
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return f.current.Load(), nil
		},
	}
}

// Run reads the files again when their content changes, until ctx ends. It keeps the current
// certificate while the files are missing, invalid or do not belong together.
func (f *Files) Run(ctx context.Context) error {
	ticker := time.NewTicker(filesInterval)
	defer ticker.Stop()
	var failed [sha256.Size]byte
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		certificate, key, err := f.contents()
		seen := sum(certificate, key)
		if err == nil && seen == f.read {
			continue
		}
		if err == nil {
			err = f.use(certificate, key)
		}
		switch {
		case err == nil:
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
func (f *Files) contents() (certificate, key []byte, err error) {
	if certificate, err = os.ReadFile(f.certificate); err != nil {
		return nil, nil, fmt.Errorf("certificate: %w", err)
	}
	if key, err = os.ReadFile(f.key); err != nil {
		return nil, nil, fmt.Errorf("key: %w", err)
	}
	return certificate, key, nil
}

// use puts a pair into use if it is valid.
func (f *Files) use(certificate, key []byte) error {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return fmt.Errorf("%s and %s: %w", f.certificate, f.key, err)
	}
	if end := pair.Leaf.NotAfter; time.Now().After(end) {
		return fmt.Errorf("%s: expired on %s", f.certificate, end.UTC().Format(time.DateOnly))
	}
	f.current.Store(&pair)
	f.expiry(pair.Leaf.NotAfter)
	return nil
}

func sum(certificate, key []byte) [sha256.Size]byte {
	return sha256.Sum256(bytes.Join([][]byte{certificate, key}, []byte{0}))
}
