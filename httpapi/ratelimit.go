package httpapi

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/httpapi/response"
	"hubcloud/streams/shares"
)

// rejectedPerSecond and rejectedBurst are how many requests of a key or address beyond its rate are
// rejected at once, and maxHeld is how long further ones wait at most: a client in a loop, which
// does not read Retry-After, otherwise takes the processors from everyone else.
const (
	rejectedPerSecond, rejectedBurst = 50, 500
	maxHeld                          = time.Second
)

// countForKey counts the request on the rate limit of its API key.
func (req *request) countForKey() error {
	req.api.Shares.Active(req.key.Reach.OrgID, time.Now())
	return req.checkAllowance(req.key.ID, req.api.keyRates.Take(req.key.ID, req.start), req.api.metrics.limited.key)
}

// countForAddress counts the request on the rate limit of the client's address.
func (req *request) countForAddress() error {
	block := shares.AddressBlock(req.remote)
	return req.checkAllowance(
		block.String(), req.api.addressRates.Take(block, req.start), req.api.metrics.limited.address,
	)
}

// checkAllowance sets the RateLimit header fields. If the allowance of a key or address is used up,
// it increments limited and returns rate_limited: at once, or after maxHeld if it was rejected too
// often lately.
func (req *request) checkAllowance(
	id string, a shares.Allowance, limited prometheus.Counter,
) error {
	req.setHeader(slotRateLimit, "RateLimit-Limit", strconv.Itoa(a.Limit))
	req.setHeader(slotRateRemaining, "RateLimit-Remaining", strconv.Itoa(a.Remaining))
	req.setHeader(slotRateReset, "RateLimit-Reset", strconv.Itoa(response.WholeSeconds(a.Full)))
	req.setHeader(slotRatePolicy, "RateLimit-Policy", a.Policy)
	if a.Granted {
		return nil
	}
	limited.Inc()
	if held := req.api.rejectedRates.Spend(id, 1, req.start); held > 0 {
		select {
		case <-req.ctx.Done():
		case <-time.After(min(held, maxHeld)):
		}
	}
	return domain.RateLimited(
		a.Next, "too many requests; wait for the number of seconds in the header Retry-After",
	)
}
