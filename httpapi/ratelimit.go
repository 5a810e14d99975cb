package httpapi

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/httpapi/apierror"
	"hubcloud/streams/shares"
)

// countForKey counts the request on the rate limit of its API key.
func (req *request) countForKey() error {
	return req.checkAllowance(
		req.api.keyRates.Take(req.key.ID, req.start), req.api.metrics.limited.key,
	)
}

// countForAddress counts the request on the rate limit of the client's address.
func (req *request) countForAddress() error {
	return req.checkAllowance(
		req.api.addressRates.Take(shares.AddressBlock(req.remote), req.start),
		req.api.metrics.limited.address,
	)
}

// checkAllowance sets the RateLimit header fields. If the allowance is used up, it increments
// limited and returns rate_limited.
func (req *request) checkAllowance(a shares.Allowance, limited prometheus.Counter) error {
	req.setHeader(slotRateLimit, "RateLimit-Limit", strconv.Itoa(a.Limit))
	req.setHeader(slotRateRemaining, "RateLimit-Remaining", strconv.Itoa(a.Remaining))
	req.setHeader(slotRateReset, "RateLimit-Reset", strconv.Itoa(apierror.WholeSeconds(a.Full)))
	req.setHeader(slotRatePolicy, "RateLimit-Policy", a.Policy)
	if a.Granted {
		return nil
	}
	limited.Inc()
	return domain.RateLimited(
		a.Next, "too many requests; wait for the number of seconds in the header Retry-After",
	)
}
