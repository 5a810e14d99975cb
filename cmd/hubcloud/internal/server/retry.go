package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/projections/schema"
	"hubcloud/streams"
	"hubcloud/streams/backup"
	"hubcloud/streams/broker"
)

const (
	// retryPause is the pause between two tries.
	retryPause = 500 * time.Millisecond
	// waitLogInterval is the time between two log lines of a start that waits.
	waitLogInterval = 10 * time.Second
)

// errStartTimeout is the cause of the start's context when --start-timeout has passed.
var errStartTimeout = errors.New("not started in time")

// retry calls do until it succeeds, fails for a reason that does not pass by itself, or ctx ends.
// During a start, external servers may not run yet, may have no leader, or may know a stream by
// name before they can open it. retry logs the first failure at once, and every ten seconds what it
// waits for.
func (s *process) retry(ctx context.Context, what string, do func(ctx context.Context) error) error {
	w := &wait{what: what, began: time.Now(), logger: s.logger}
	defer w.logEvery(waitLogInterval)()
	for {
		err := do(ctx)
		switch {
		case err == nil:
			return nil
		case errors.Is(context.Cause(ctx), errStartTimeout):
			return fmt.Errorf(
				"%w: after %s (--start-timeout) still waiting for %s: %w", errStartTimeout,
				s.cfg.StartTimeout, what, w.reason(err),
			)
		case lasting(err) || ctx.Err() != nil:
			return err
		}
		if first := w.failed(err); first {
			w.log()
		}
		streams.Sleep(ctx, retryPause)
	}
}

// wait describes what a start waits for. Its methods may be called concurrently.
type wait struct {
	what   string
	began  time.Time
	logger *slog.Logger

	mu        sync.Mutex
	lastError error
}

// failed stores the error of a try and reports whether it was the first one.
func (w *wait) failed(err error) (first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first, w.lastError = w.lastError == nil, err
	return first
}

// reason returns the error of the last complete try. err is the error of the current try, which the
// timeout may have cut short.
func (w *wait) reason(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lastError != nil {
		return w.lastError
	}
	return err
}

// logEvery logs the wait once per interval until the returned function is called.
func (w *wait) logEvery(interval time.Duration) (stop func()) {
	done := make(chan struct{})
	var logging sync.WaitGroup
	logging.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				w.log()
			}
		}
	})
	return func() {
		close(done)
		logging.Wait()
	}
}

func (w *wait) log() {
	w.mu.Lock()
	err := w.lastError
	w.mu.Unlock()
	attrs := []any{"for", w.what, "waited", time.Since(w.began).Round(time.Second)}
	if err != nil {
		attrs = append(attrs, "error", err)
	}
	w.logger.Warn("waiting", attrs...)
}

// finalError marks an error that retry returns at once, because do has itself tried for as long as
// makes sense.
type finalError struct{ error }

// Unwrap returns the marked error.
func (e finalError) Unwrap() error { return e.error }

// JetStream error codes that mean a wrong setup: three replicas without a cluster, and a stream
// whose configuration cannot change to the requested one.
const (
	codeNoCluster     = 10074
	codeInvalidStream = 10052
)

// lasting reports whether an error does not pass by itself, such as a wrong password, an untrusted
// certificate or another installation's data. All other errors are worth a retry.
func lasting(err error) bool {
	for _, known := range []error{
		nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrSecureConnRequired,
		nats.ErrSecureConnWanted, streams.ErrIncompatible, broker.ErrShards,
		backup.ErrRestoring, schema.ErrOtherInstallation, schema.ErrEncoding,
		schema.ErrPooler, installation.ErrNewerFormat,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	var (
		usageErr    installation.UsageError
		final       finalError
		api         *jetstream.APIError
		authority   x509.UnknownAuthorityError
		host        x509.HostnameError
		certificate x509.CertificateInvalidError
		unverified  *tls.CertificateVerificationError
	)
	if errors.As(err, &api) {
		return api.ErrorCode == codeNoCluster || api.ErrorCode == codeInvalidStream
	}
	return errors.As(err, &usageErr) || errors.As(err, &final) || errors.As(err, &authority) ||
		errors.As(err, &host) || errors.As(err, &certificate) || errors.As(err, &unverified)
}
