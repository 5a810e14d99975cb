package virtualhub

import (
	"context"
	"errors"
	"time"
)

// steady is how long a connection must have held for the next attempt to come soon again.
const steady = 10 * time.Second

// runLink keeps the hub connected: it enrols when it must, connects, and waits a while when that
// does not work.
func (h *Hub) runLink(ctx context.Context) error {
	defer h.c.disconnect()
	wait := backoff{least: h.cfg.BackoffMin, most: h.cfg.BackoffMax}
	for ctx.Err() == nil {
		interrupted, offline, restarted := h.orders()
		if restarted {
			h.admission.restarted()
			wait.reset()
		}
		if offline {
			pause(ctx, interrupted, -1)
			continue
		}
		if retry, ok := h.certify(ctx, &wait); !ok {
			pause(ctx, interrupted, retry)
			continue
		}
		begun := time.Now()
		err := h.session(ctx, interrupted)
		if err == nil { // ended by ctx, an order, or for a new certificate
			continue
		}
		if time.Since(begun) > steady {
			wait.reset()
		}
		if h.refused(err) {
			h.cfg.Log.Warn("the hub's certificate is of no use: it enrols again", "error", err)
			if h.enrol(ctx) == nil {
				continue
			}
		}
		retry := wait.next()
		h.cfg.Log.Info("no connection", "error", err, "retry_in", retry)
		pause(ctx, interrupted, retry)
	}
	return nil
}

// orders is what the hub has been told to do, with a channel that is closed when that changes. An
// order to restart is given once.
func (h *Hub) orders() (interrupted <-chan struct{}, offline, restarted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	restarted, h.restarted = h.restarted, false
	return h.interrupted, h.offline, restarted
}

// pause waits for d (below 0: for ever), an order or the end.
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

// certify sees to it that there is a certificate, and a new one when it ends soon. False: there is
// none that is of use, and the next attempt is due in retry.
func (h *Hub) certify(ctx context.Context, wait *backoff) (retry time.Duration, ok bool) {
	if h.identity != nil && !h.identity.renewable(time.Now(), h.cfg.RenewBefore) {
		return 0, true
	}
	err := h.enrol(ctx)
	if err == nil || h.identity != nil && !h.identity.renewable(time.Now(), 0) {
		return 0, true
	}
	retry = wait.next()
	if refused := new(enrolError); errors.As(err, &refused) {
		retry = max(retry, refused.RetryAfter)
	}
	return retry, false
}

// enrol gets a certificate and keeps it.
func (h *Hub) enrol(ctx context.Context) error {
	i, err := enrol(ctx, h.cfg, h.id)
	h.admission.enrolled(time.Now())
	if err == nil {
		err = i.write(h.cfg.Dir)
	}
	if err != nil {
		h.cfg.Log.Warn("the hub gets no certificate", "error", err)
		return err
	}
	h.identity = i
	h.cfg.Log.Info("enrolled", "broker", i.Broker, "expires_at", i.leaf.NotAfter)
	return nil
}

// refused says whether err, the end of a connection, is a reason to enrol again now.
func (h *Hub) refused(err error) bool {
	now := time.Now()
	switch cause := new(connectError); {
	case !errors.As(err, &cause):
		return false // the connection was lost later
	case cause.stage == dialing:
		return h.admission.unreachable()
	default:
		return h.admission.refused(cause.certain(), now)
	}
}
