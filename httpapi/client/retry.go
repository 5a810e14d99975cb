package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"
)

// waitAfter gives the wait before a call is sent again after err, its tries-th failure counted from
// 0, and false when it is not.
func (c *Client) waitAfter(err error, what call, tries int) (time.Duration, bool) {
	if c.retry.MaxElapsed < 0 {
		return 0, false
	}
	if broken, ok := errors.AsType[*connectionError](err); ok {
		return c.backoff(tries), !what.once || !broken.sent
	}
	refusal, ok := errors.AsType[*Error](err)
	if !ok || !repeatable(refusal.Status) || slices.Contains(c.retry.Except, refusal.Type) {
		return 0, false
	}
	return c.waitFor(refusal, tries), true
}

// repeatable says which refusals the contract's table of errors wants repeated. hub_not_addable
// (422) is the one that it leaves to the caller: no wait makes a hub come online.
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

// mayHaveActed says whether the service may have done what a failed try asked for.
func mayHaveActed(err error) bool {
	if broken, ok := errors.AsType[*connectionError](err); ok {
		return broken.sent
	}
	refusal, ok := errors.AsType[*Error](err)
	return ok && refusal.Status >= 500 && refusal.Type != ErrHubOffline &&
		refusal.Type != ErrHubUnavailable
}

// waitFor is the wait that a refusal asks for, or the backoff when that is longer. It is never
// shorter than what was asked for, and a little longer by chance, so that clients that were refused
// together do not come back together.
func (c *Client) waitFor(refusal *Error, tries int) time.Duration {
	asked := refusal.RetryAfter
	if asked == 0 {
		return c.backoff(tries)
	}
	spread := min(asked/4, time.Second) + 1
	return max(asked+rand.N(spread), c.backoff(tries))
}

// backoff is the wait after the tries-th failure, counted from 0: it doubles up to MaxBackoff, and
// is spread over its upper half.
func (c *Client) backoff(tries int) time.Duration {
	full := c.retry.MaxBackoff
	if tries < 30 && c.retry.MinBackoff < full>>tries {
		full = c.retry.MinBackoff << tries
	}
	return full - rand.N(full/2+1)
}

// exceeded says whether a wait would go beyond what a call that began then may take.
func (c *Client) exceeded(ctx context.Context, began time.Time, wait time.Duration) bool {
	until := time.Now().Add(wait)
	if deadline, ok := ctx.Deadline(); ok && until.After(deadline) {
		return true
	}
	return until.Sub(began) > c.retry.MaxElapsed
}

// sleep waits, and says whether it was not disturbed.
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
