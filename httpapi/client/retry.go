package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"
)

// waitAfter returns how long to wait before retrying a call that failed with err, and false if it
// must not be retried. tries counts the failures before this one.
func (c *Client) waitAfter(err error, what call, tries int) (time.Duration, bool) {
	if c.retry.MaxElapsed < 0 {
		return 0, false
	}
	if broken, ok := errors.AsType[*connectionError](err); ok {
		return c.backoff(tries), !what.once || !broken.sent
	}
	known, ok := errors.AsType[*Error](err)
	if !ok || !repeatable(known.Status) || slices.Contains(c.retry.Except, known.Type) {
		return 0, false
	}
	return c.waitFor(known, tries), true
}

// repeatable reports whether the contract's table of errors says to retry an error. hub_not_addable
// (422) is left to the caller: waiting does not make a hub come online.
func repeatable(status int) bool {
	switch status {
	case http.StatusTooManyRequests,
		http.StatusInternalServerError,
		http.StatusBadGateway,
		http.StatusServiceUnavailable,
		http.StatusGatewayTimeout:
		return true
	}
	return false
}

// mayHaveActed reports whether the service may have done what a failed attempt asked for.
func mayHaveActed(err error) bool {
	if broken, ok := errors.AsType[*connectionError](err); ok {
		return broken.sent
	}
	known, ok := errors.AsType[*Error](err)
	return ok && known.Status >= 500 && known.Type != ErrHubOffline &&
		known.Type != ErrHubUnavailable
}

// waitFor returns the wait that an error asks for, or the backoff if that is longer. It adds
// jitter, so that clients that were rejected together do not return together, and never shortens
// the wait.
func (c *Client) waitFor(known *Error, tries int) time.Duration {
	asked := known.RetryAfter
	if asked == 0 {
		return c.backoff(tries)
	}
	spread := min(asked/4, time.Second) + 1
	return max(asked+rand.N(spread), c.backoff(tries))
}

// backoff returns the wait after a number of failures: it doubles up to MaxBackoff and is
// randomized over its upper half.
func (c *Client) backoff(tries int) time.Duration {
	full := c.retry.MaxBackoff
	if tries < 30 && c.retry.MinBackoff < full>>tries {
		full = c.retry.MinBackoff << tries
	}
	return full - rand.N(full/2+1)
}

// exceeded reports whether a wait would exceed what a call that began then may take.
func (c *Client) exceeded(ctx context.Context, began time.Time, wait time.Duration) bool {
	until := time.Now().Add(wait)
	if deadline, ok := ctx.Deadline(); ok && until.After(deadline) {
		return true
	}
	return until.Sub(began) > c.retry.MaxElapsed
}

// sleep waits, and reports whether the whole time passed before ctx ended.
func sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
