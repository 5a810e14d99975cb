package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/cmd/hubcloud/internal/usage"
	"hubcloud/projections"
	"hubcloud/streams"
	"hubcloud/streams/backup"
	"hubcloud/streams/broker"
)

const (
	// awaitPause is the pause between two tries of what a start waits for, and awaitTell the time
	// between two lines about it.
	awaitPause = 500 * time.Millisecond
	awaitTell  = 10 * time.Second
)

// errStartTimeout reports that a start has waited for as long as it may.
var errStartTimeout = errors.New("not started in time")

// await does what needs a server that others run, or other replicas: again and again, until it
// works, ctx ends, or it fails for a reason that does not pass. Servers that start at the same
// moment as this one are not there yet, or have no leader yet, or know a stream by name and cannot
// open it yet. What is waited for is logged at once when the first try fails, and every ten
// seconds; do may run more than once.
func (s *Server) retry(
	ctx context.Context, what string, do func(ctx context.Context) error,
) error {
	w := &waiting{what: what, began: time.Now()}
	told, stopTelling := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		w.tellUntil(stopTelling, s)
	}()
	defer func() {
		close(stopTelling)
		<-told
	}()
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
		if w.failed(err) {
			w.tell(s)
		}
		select {
		case <-time.After(awaitPause):
		case <-ctx.Done():
		}
	}
}

// finalError is an error after which await does not try again, because what failed has itself tried
// for as long as it makes sense.
type finalError struct{ error }

// Unwrap returns the error.
func (e finalError) Unwrap() error { return e.error }

// waiting is what a start waits for.
type waiting struct {
	what  string
	began time.Time

	mu   sync.Mutex
	last error
}

// failed keeps why a try failed, and reports whether it was the first.
func (w *waiting) failed(err error) (first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first, w.last = w.last == nil, err
	return first
}

// reason returns what the try before the last one failed with, if there was one: the last may only
// have been cut short.
func (w *waiting) reason(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last != nil {
		return w.last
	}
	return err
}

func (w *waiting) tellUntil(stop <-chan struct{}, s *Server) {
	ticker := time.NewTicker(awaitTell)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			w.tell(s)
		}
	}
}

func (w *waiting) tell(s *Server) {
	w.mu.Lock()
	err := w.last
	w.mu.Unlock()
	attrs := []any{"for", w.what, "waited", time.Since(w.began).Round(time.Second)}
	if err != nil {
		attrs = append(attrs, "error", err)
	}
	s.logger.Warn("waiting", attrs...)
}

// Error codes of the broker that say that it is set up for something else: without a cluster there
// are no three copies; a stream cannot be as declared.
const (
	codeNoCluster     = 10074
	codeInvalidStream = 10052
)

// lasting reports whether an error does not pass by itself: a wrong password, a certificate that
// nobody vouches for, an installation that is not this one. Everything else is worth another try.
func lasting(err error) bool {
	for _, known := range []error{
		nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrSecureConnRequired,
		nats.ErrSecureConnWanted, streams.ErrIncompatible, broker.ErrShards,
		backup.ErrRestoring, projections.ErrOtherInstallation, projections.ErrEncoding,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	var (
		usage       usage.Error
		final       finalError
		refused     *jetstream.APIError
		unknown     x509.UnknownAuthorityError
		host        x509.HostnameError
		certificate x509.CertificateInvalidError
		unverified  *tls.CertificateVerificationError
	)
	if errors.As(err, &refused) {
		return refused.ErrorCode == codeNoCluster || refused.ErrorCode == codeInvalidStream
	}
	return errors.As(err, &usage) || errors.As(err, &final) || errors.As(err, &unknown) ||
		errors.As(err, &host) ||
		errors.As(err, &certificate) ||
		errors.As(err, &unverified)
}
