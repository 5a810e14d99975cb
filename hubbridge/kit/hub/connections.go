package hub

import (
	"context"
	"errors"
	"time"
)

// stableConnection is how long a connection must last to reset the backoff.
const stableConnection = 10 * time.Second

// runConnections keeps the hub connected until ctx ends: it enrols if necessary, runs one session
// after the other, and waits between failed attempts.
func (h *Hub) runConnections(ctx context.Context) {
	defer h.engine.disconnect()
	wait := backoff{minimum: h.cfg.BackoffMin, maximum: h.cfg.BackoffMax}
	for ctx.Err() == nil {
		interrupted, offline, restarted := h.takeInterrupts()
		if restarted {
			h.schedule.restarted()
			wait.reset()
		}
		if offline {
			pause(ctx, interrupted, -1)
			continue
		}
		if retryIn, ok := h.ensureCertificate(ctx, &wait); !ok {
			pause(ctx, interrupted, retryIn)
			continue
		}
		begun := time.Now()
		err := h.runSession(ctx, interrupted)
		if err == nil { // ended by ctx, by an interrupt, or to renew the certificate
			continue
		}
		if time.Since(begun) > stableConnection {
			wait.reset()
		}
		if h.shouldEnrol(err) {
			h.cfg.Logger.Warn("connection rejected; enrolling again", "error", err)
			if h.enrol(ctx) == nil {
				continue
			}
		}
		retryIn := wait.next()
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
	ctx context.Context, wait *backoff,
) (retryIn time.Duration, ok bool) {
	if h.identity != nil && !h.identity.expiresWithin(h.cfg.RenewBefore, time.Now()) {
		return 0, true
	}
	err := h.enrol(ctx)
	if err == nil || h.identity != nil && !h.identity.expiresWithin(0, time.Now()) {
		return 0, true
	}
	retryIn = wait.next()
	if rejected := new(enrolmentError); errors.As(err, &rejected) {
		retryIn = max(retryIn, rejected.RetryAfter)
	}
	return retryIn, false
}

// enrol gets a new identity and stores it.
func (h *Hub) enrol(ctx context.Context) error {
	var identity *identity
	err := h.inSlot(ctx, func() (err error) {
		identity, err = requestIdentity(ctx, h.cfg, h.id)
		return err
	})
	h.schedule.enrolled(time.Now(), err)
	if err == nil {
		err = identity.write(h.cfg.Dir)
	}
	if err != nil {
		h.cfg.Logger.Warn("enrolment failed", "error", err)
		return err
	}
	h.identity = identity
	h.engine.setEnrolled()
	h.cfg.Logger.Info("enrolled", "broker", identity.Broker, "expires_at", identity.notAfter())
	return nil
}

// inSlot calls do in one of the slots for enrolments and connects.
func (h *Hub) inSlot(ctx context.Context, do func() error) error {
	if h.cfg.Slots != nil {
		if err := h.cfg.Slots.Acquire(ctx, 1); err != nil {
			return err
		}
		defer h.cfg.Slots.Release(1)
	}
	return do()
}

// shouldEnrol reports whether the hub should enrol again after a session that ended with err.
func (h *Hub) shouldEnrol(err error) bool {
	switch failed := new(connectError); {
	case !errors.As(err, &failed):
		return false // the connection was established, and lost later
	case !failed.reached:
		return h.schedule.unreachableBroker()
	case failed.untrusted():
		return h.schedule.untrustedBroker(time.Now())
	default:
		return h.schedule.rejectedHub(failed.needsCertificate(), time.Now())
	}
}
