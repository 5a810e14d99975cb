package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
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
// waits for, also while do does not return.
func (s *process) retry(ctx context.Context, what string, do func(ctx context.Context) error) error {
	began := time.Now()
	var last atomic.Pointer[error] // the error of the last complete try
	log := func() {
		attrs := []any{"for", what, "waited", time.Since(began).Round(time.Second)}
		if err := last.Load(); err != nil {
			attrs = append(attrs, "error", *err)
		}
		s.logger.Warn("waiting", attrs...)
	}
	trying, stop := context.WithCancel(ctx)
	var logging sync.WaitGroup
	logging.Go(func() {
		for streams.Sleep(trying, waitLogInterval) {
			log()
		}
	})
	defer func() {
		stop()
		logging.Wait()
	}()
	for {
		err := do(ctx)
		switch {
		case err == nil:
			return nil
		case errors.Is(context.Cause(ctx), errStartTimeout):
			if before := last.Load(); before != nil {
				err = *before // the timeout may have cut this try short
			}
			return fmt.Errorf(
				"%w: after %s (--start-timeout) still waiting for %s: %w", errStartTimeout,
				s.cfg.StartTimeout, what, err,
			)
		case lasting(err) || ctx.Err() != nil:
			return err
		}
		if last.Swap(&err) == nil {
			log()
		}
		streams.Sleep(ctx, retryPause)
	}
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
