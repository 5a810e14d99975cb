package once

import (
	"context"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/jsapi"
)

const (
	// recountDivisor limits the error of the bound: this replica counts an organization's keys at
	// the broker again once it has admitted MaxPerOrg/recountDivisor keys since the last count.
	recountDivisor = 16
	// recountPause is the pause between two counts of an organization that has reached its bound,
	// and its Retry-After.
	recountPause = 10 * time.Second
	// maxCounted bounds the organizations whose counts are kept.
	maxCounted = 10_000
	// countTimeout bounds one count.
	countTimeout = 2 * time.Second
)

// count is the number of an organization's keys, as far as this replica knows.
type count struct {
	// counted is the number at the broker at the time countedAt.
	counted   int
	countedAt time.Time
	// added is the number that this replica has reserved since.
	added int
}

func (c *count) total() int { return c.counted + c.added }

// admitted reports whether an organization may have one more key without a count at the broker.
func (k *Keys) admitted(org string) bool {
	if k.bytes.Next(org, k.cfg.Now()) > 0 {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.counts[org]
	return c == nil ||
		c.total() < k.cfg.MaxPerOrg && c.added < max(1, k.cfg.MaxPerOrg/recountDivisor)
}

// addKey counts one more key of an organization.
func (k *Keys) addKey(org string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.countOf(org).added++
}

func (k *Keys) countOf(org string) *count {
	c := k.counts[org]
	if c == nil {
		if len(k.counts) >= maxCounted {
			clear(k.counts) // each is counted again when it is due
		}
		c = &count{}
		k.counts[org] = c
	}
	return c
}

// admit returns rate_limited for an organization that has the most keys allowed.
func (k *Keys) admit(ctx context.Context, org string) error {
	if k.admitted(org) {
		return nil
	}
	if k.bytes.Next(org, k.cfg.Now()) > 0 {
		return domain.RateLimited(
			recountPause,
			"Idempotency-Key: the answers of the organization within %s have %d bytes; no more are "+
				"allowed", k.cfg.Window, k.cfg.MaxBytesPerOrg,
		)
	}
	total := k.recount(ctx, org)
	if total < k.cfg.MaxPerOrg {
		return nil
	}
	return domain.RateLimited(
		recountPause,
		"Idempotency-Key: the organization has used %d keys within %s; at most %d are allowed. "+
			"Each is free again %s after its first use",
		total, k.cfg.Window, k.cfg.MaxPerOrg, k.cfg.Window,
	)
}

// recount returns the number of an organization's keys. It counts them at the broker if a count is
// due; if the broker does not answer, the old count stays.
func (k *Keys) recount(ctx context.Context, org string) (total int) {
	k.mu.Lock()
	c := k.countOf(org)
	due := time.Since(c.countedAt) >= recountPause || c.total() < k.cfg.MaxPerOrg
	if due {
		c.countedAt = time.Now() // concurrent requests use the old count
	}
	k.mu.Unlock()
	var counted int
	var err error
	if due {
		if counted, err = k.countAtBroker(ctx, org); err != nil {
			k.cfg.Logger.WarnContext(
				ctx, "idempotency keys not counted", "org_id", org, "error", err,
			)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if due && err == nil {
		c.counted, c.added = counted, 0
	}
	return c.total()
}

// countAtBroker returns the number of an organization's keys. Any replica of the stream may answer.
// A stale answer admits or rejects a few keys too many until the next count.
func (k *Keys) countAtBroker(ctx context.Context, org string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	return jsapi.New(k.cloud).CountMessages(
		ctx, jsapi.BucketStream(BucketName), jsapi.BucketSubject(BucketName, org+".>"),
	)
}
