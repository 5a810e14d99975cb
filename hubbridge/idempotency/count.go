package idempotency

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
)

const (
	// recountAfter is the part of the bound that this replica lets in between two counts at the
	// broker.
	recountAfter = 16
	// recountPause is the pause between two counts of an organization that has reached its bound,
	// and its Retry-After.
	recountPause = 10 * time.Second
	// maxCounted is how many organizations' counts are kept.
	maxCounted = 10_000
	// countTimeout bounds one count.
	countTimeout = 2 * time.Second
)

// count is what this replica knows of an organization's keys.
type count struct {
	// known is what the broker had at the time `at`, and added what this replica has reserved
	// since.
	known, added int
	at           time.Time
}

// admitted reports whether an organization may have one more key, as far as is known without
// asking.
func (k *Keys) admitted(org string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.counts[org]
	return c == nil ||
		c.known+c.added < k.cfg.MaxPerOrg && c.added < max(1, k.cfg.MaxPerOrg/recountAfter)
}

// counted notes that an organization has one more key.
func (k *Keys) counted(org string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.countOf(org).added++
}

func (k *Keys) countOf(org string) *count {
	c := k.counts[org]
	if c == nil {
		if len(k.counts) >= maxCounted {
			clear(k.counts) // counted anew when that is due
		}
		c = &count{}
		k.counts[org] = c
	}
	return c
}

// admit refuses an organization that has as many keys as it may have. It counts them at the broker
// when that is due.
func (k *Keys) admit(ctx context.Context, org string) error {
	if k.admitted(org) {
		return nil
	}
	k.mu.Lock()
	c := k.countOf(org)
	due := time.Since(c.at) >= recountPause || c.known+c.added < k.cfg.MaxPerOrg
	if due {
		c.at = time.Now() // others go by what is known meanwhile
	}
	k.mu.Unlock()
	if due {
		if n, err := k.ask(ctx, org); err != nil {
			k.cfg.Log.WarnContext(ctx, "idempotency keys not counted", "org_id", org, "error", err)
		} else {
			k.mu.Lock()
			c.known, c.added = n, 0
			k.mu.Unlock()
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if c.known+c.added < k.cfg.MaxPerOrg {
		return nil
	}
	err := domain.Errorf(
		domain.CodeRateLimited,
		"Idempotency-Key: the organization has used %d keys within %s; at most %d are allowed "+
			"(--idempotency-keys-per-org). Each is free again %s after its first use",
		c.known+c.added,
		k.cfg.Window,
		k.cfg.MaxPerOrg,
		k.cfg.Window,
	)
	err.RetryAfter = recountPause
	return err
}

// ask counts the keys of an organization at the broker: a batched get says how many messages
// follow. Any replica of the stream may answer. A stale answer lets in a few keys more, or refuses
// a few until the next count.
func (k *Keys) ask(ctx context.Context, org string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	question, err := json.Marshal(struct {
		Seq     uint64 `json:"seq"`
		Batch   int    `json:"batch"`
		Subject string `json:"next_by_subj"`
	}{1, 1, "$KV." + BucketName + "." + org + ".>"})
	if err != nil {
		return 0, err
	}
	answer, err := k.cloud.RequestMsgWithContext(
		ctx, &nats.Msg{Subject: "$JS.API.DIRECT.GET.KV_" + BucketName, Data: question},
	)
	if err != nil {
		return 0, fmt.Errorf("count idempotency keys: %w", err)
	}
	switch status := answer.Header.Get("Status"); status {
	case "":
	case "404":
		return 0, nil
	default:
		return 0, fmt.Errorf(
			"count idempotency keys: status %s: %s", status, answer.Header.Get("Description"),
		)
	}
	pending, err := strconv.Atoi(answer.Header.Get("Nats-Num-Pending"))
	if err != nil {
		return 0, fmt.Errorf("count idempotency keys: unreadable answer: %w", err)
	}
	return pending + 1, nil
}
