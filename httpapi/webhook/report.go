package webhook

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

const (
	// reportEvery is the interval of progress in the log.
	reportEvery = 30 * time.Second
	// maxWarnings is the most failed attempts that are logged between two reports. All are counted.
	maxWarnings = 20
)

// stats count what has happened. Forwarder.mu guards them.
type stats struct {
	delivered, skipped, failures int
	// warnings counts the failures that were logged since the last report.
	warnings int
}

// failed records a failed attempt and returns the wait before the next one: the longer of backoff
// and what the receiver asked for.
func (f *Forwarder) failed(h *hub, events []*entry, err error) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	wait := backoff(h.failures)
	if answer, ok := errors.AsType[*Rejection](err); ok {
		wait = max(wait, answer.RetryAfter)
	}
	h.failures++
	h.last = err
	f.stats.failures++
	if f.stats.warnings++; f.stats.warnings <= maxWarnings {
		f.cfg.Logger.Warn(
			"event not delivered", "hub_id", h.id, "cursor", events[0].cursor,
			"events", len(events), "attempt", h.failures, "error", err, "wait", wait,
		)
	}
	return wait
}

// backoff returns the wait after a number of failures.
func backoff(failures int) time.Duration {
	full := maxBackoff
	if failures < 30 && minBackoff < full>>failures {
		full = minBackoff << failures
	}
	return full - rand.N(full/2+1)
}

// reportRegularly logs the progress while there is any.
func (f *Forwarder) reportRegularly(ctx context.Context) error {
	var last stats
	for sleep(ctx, reportEvery) {
		f.mu.Lock()
		now, undelivered := f.stats, f.undelivered.count
		f.stats.warnings, now.warnings = 0, 0
		failing := f.failing()
		f.mu.Unlock()
		if now == last && undelivered == 0 {
			continue
		}
		f.cfg.Logger.Info("forwarding", append([]any{
			"delivered", now.delivered - last.delivered, "failures", now.failures - last.failures,
			"undelivered", undelivered,
		}, failing...)...)
		last = now
	}
	return ctx.Err()
}

// failing returns log attributes for the hubs whose first event has failed: their number, and the
// one with the most attempts. The caller holds mu.
func (f *Forwarder) failing() []any {
	count := 0
	var worst *hub
	for _, h := range f.hubs {
		if h.failures == 0 {
			continue
		}
		count++
		if worst == nil || h.failures > worst.failures {
			worst = h
		}
	}
	if worst == nil {
		return nil
	}
	return []any{
		"failing_hubs", count, "hub_id", worst.id, "cursor", worst.events[0].cursor,
		"attempts", worst.failures, "error", worst.last,
	}
}

// reportPause logs that the feed is not read further for now. The caller holds mu.
func (f *Forwarder) reportPause() {
	var longest *hub
	for _, h := range f.hubs {
		if longest == nil || len(h.events) > len(longest.events) {
			longest = h
		}
	}
	attributes := []any{"undelivered", f.undelivered.count, "bytes", f.undelivered.bytes}
	if longest != nil {
		attributes = append(
			attributes, "hub_id", longest.id, "hub_undelivered", len(longest.events), "cursor",
			longest.events[0].cursor, "attempts", longest.failures,
		)
	}
	f.cfg.Logger.Warn("feed paused: the receiver is too far behind", attributes...)
}

// reportEnd logs the totals.
func (f *Forwarder) reportEnd() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cfg.Logger.Info(
		"forwarding ended", "delivered", f.stats.delivered, "skipped", f.stats.skipped,
		"failures", f.stats.failures, "undelivered", f.undelivered.count,
	)
}
