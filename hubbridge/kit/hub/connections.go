package hub

import (
	"context"
	"errors"
	"time"

	"hubcloud/hubbridge/kit/hub/brokerconn"
	"hubcloud/hubbridge/kit/hub/enrolment"
)

// stableConnection is how long a connection must last to reset the backoff.
const stableConnection = 10 * time.Second

// runConnections keeps the hub connected until ctx ends: it enrols if necessary, runs one session
// after the other, and waits between failed attempts.
func (h *Hub) runConnections(ctx context.Context) {
	defer h.engine.Disconnect()
	backoff := brokerconn.Backoff{Min: h.cfg.BackoffMin, Max: h.cfg.BackoffMax}
	for ctx.Err() == nil {
		interrupted, offline, restarted := h.takeInterrupts()
		if restarted {
			h.schedule.Restarted()
			backoff.Reset()
		}
		if offline {
			pause(ctx, interrupted, -1)
			continue
		}
		if retryIn, ok := h.ensureCertificate(ctx, &backoff); !ok {
			pause(ctx, interrupted, retryIn)
			continue
		}
		begun := time.Now()
		err := h.runSession(ctx, interrupted)
		if err == nil { // ended by ctx, by an interrupt, or to renew the certificate
			continue
		}
		if time.Since(begun) > stableConnection {
			backoff.Reset()
		}
		if h.shouldEnrol(err) {
			h.cfg.Logger.Warn("connection rejected; enrolling again", "error", err)
			if h.enrol(ctx) == nil {
				continue
			}
		}
		retryIn := backoff.Next()
		h.cfg.Logger.Info("not connected", "error", err, "retry_in", retryIn)
		pause(ctx, interrupted, retryIn)
	}
}

// takeInterrupts returns whether the hub must stay offline, whether it was restarted since the last
// call, and a channel that is closed when either changes.
func (h *Hub) takeInterrupts() (interrupted <-chan struct{}, offline, restarted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	restarted, h.restarted = h.restarted, false
	return h.interrupted, h.offline, restarted
}

// pause waits for d, or without limit if d is negative. It ends early with ctx or when interrupted
// is closed.
func pause(ctx context.Context, interrupted <-chan struct{}, d time.Duration) {
	var elapsed <-chan time.Time
	if d >= 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		elapsed = timer.C
	}
	select {
	case <-ctx.Done():
	case <-interrupted:
	case <-elapsed:
	}
}

// ensureCertificate enrols if the hub has no certificate or its certificate expires soon. It
// returns false if the hub has no valid certificate then, with the wait before the next attempt.
func (h *Hub) ensureCertificate(
	ctx context.Context, backoff *brokerconn.Backoff,
) (retryIn time.Duration, ok bool) {
	if h.identity != nil && !h.identity.ExpiresWithin(h.cfg.RenewBefore, time.Now()) {
		return 0, true
	}
	err := h.enrol(ctx)
	if err == nil || h.identity != nil && !h.identity.ExpiresWithin(0, time.Now()) {
		return 0, true
	}
	retryIn = backoff.Next()
	if rejected := new(enrolment.Error); errors.As(err, &rejected) {
		retryIn = max(retryIn, rejected.RetryAfter)
	}
	return retryIn, false
}

// enrol gets a new identity and stores it.
func (h *Hub) enrol(ctx context.Context) error {
	identity, err := enrolment.Request(ctx, h.cfg.enrolmentConfig(h.id))
	h.schedule.Enrolled(time.Now(), err)
	if err == nil {
		err = identity.Write(h.cfg.Dir)
	}
	if err != nil {
		h.cfg.Logger.Warn("enrolment failed", "error", err)
		return err
	}
	h.identity = identity
	h.cfg.Logger.Info("enrolled", "broker", identity.Broker, "expires_at", identity.NotAfter())
	return nil
}

// shouldEnrol reports whether the hub should enrol again after a session that ended with err.
func (h *Hub) shouldEnrol(err error) bool {
	switch failed := new(brokerconn.Error); {
	case !errors.As(err, &failed):
		return false // the connection was established, and lost later
	case failed.Stage == brokerconn.StageDial:
		return h.schedule.Unreachable()
	case failed.Untrusted():
		return h.schedule.Untrusted(time.Now())
	default:
		return h.schedule.Rejected(failed.NeedsCertificate(), time.Now())
	}
}
