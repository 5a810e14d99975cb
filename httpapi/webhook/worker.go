package webhook

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/shares"
)

// worker delivers the events of one webhook. One goroutine uses it.
type worker struct {
	*Deliverer
	webhook domain.Webhook
	held    func() bool
	logger  *slog.Logger

	progress domain.WebhookProgress
	revision uint64
	// unsaved reports that progress differs from what is stored, and posted that a request was posted
	// since. savedAt is when it was stored, or compared.
	unsaved, posted bool
	savedAt         time.Time
	// gap reports that events expired, which no request has told yet.
	gap bool
	// failing reports that the webhook is counted as failing.
	failing bool
}

// errDisabled ends a worker whose webhook is disabled.
var errDisabled = errors.New("the webhook is disabled")

// run delivers until ctx ends.
func (d *Deliverer) run(ctx context.Context, w domain.Webhook, held func() bool) {
	k := &worker{
		Deliverer: d, webhook: w, held: held,
		logger: d.cfg.Logger.With("org_id", w.OrgID, "webhook_id", w.ID),
	}
	defer k.setFailing(false)
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, 30*time.Second) {
		begun := time.Now()
		err := k.follow(ctx)
		switch {
		case ctx.Err() != nil, errors.Is(err, errDisabled), errors.Is(err, errLost):
			return
		case domain.CodeOf(err) == domain.CodeCursorExpired:
			if !k.gap {
				k.gap = true
				d.metrics.gaps.Inc()
				k.logger.Warn("events of a webhook have expired")
			}
			continue
		}
		k.logger.Warn("webhook not followed; trying again", "error", err)
		if time.Since(begun) > time.Minute {
			pause = firstPause
		}
		streams.Sleep(ctx, pause)
	}
}

// follow reads the feed from the stored position and delivers its events, until ctx ends or
// something fails.
func (k *worker) follow(ctx context.Context) error {
	stored, revision, err := k.cfg.Progress.Get(ctx, k.webhook.ID)
	if err != nil {
		return err
	}
	k.progress, k.revision, k.savedAt = current(stored, k.webhook), revision, time.Now()
	k.unsaved, k.posted = false, false
	reader, err := k.open(ctx)
	if err != nil {
		return err
	}
	defer reader.Close()
	defer k.saveLast(ctx)
	for {
		events, err := reader.Next(ctx, maxEvents)
		switch {
		case err != nil:
			return err
		case len(events) > 0 || k.gap:
			err = k.deliver(ctx, events, reader.Cursor())
		default:
			err = k.idle(ctx, reader)
		}
		if err != nil {
			return err
		}
	}
}

// open returns a reader of what was not delivered yet.
func (k *worker) open(ctx context.Context) (Reader, error) {
	w, oldest := &k.webhook, k.cfg.Now().Add(-k.cfg.Retention)
	if k.progress.Position != "" && !k.gap {
		reader, err := k.cfg.Feeds.Follow(ctx, w.OrgID, w.Filter, k.progress.Position)
		if domain.CodeOf(err) == domain.CodeInvalidRequest { // of another number of journals
			err = domain.Errorf(domain.CodeCursorExpired, "%s", err)
		}
		return reader, err
	}
	since := w.Start.Since
	if since.Before(oldest) {
		since = oldest
		k.gap = true
	}
	return k.cfg.Feeds.FollowSince(ctx, w.OrgID, w.Filter, since)
}

// idle waits for events, and stores the position from time to time, so that it does not expire
// while no event is chosen.
func (k *worker) idle(ctx context.Context, reader Reader) error {
	if position := reader.Cursor(); position != k.progress.Position {
		k.progress.Position, k.unsaved = position, true
	}
	due := min(saveIdle, k.cfg.Retention/8)
	if k.posted {
		due = saveEvery
	}
	timer := time.NewTimer(max(due-time.Since(k.savedAt), 0))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-reader.Ready():
		return nil
	case <-timer.C:
		return k.save(ctx)
	}
}

// deliver posts events until the receiver has taken them. position is the one after them.
func (k *worker) deliver(
	ctx context.Context, events []domain.EncodedEvent, position string,
) error {
	var bodies [][]byte
	if k.gap {
		bodies = append(bodies, gapEvent(k.cfg.Now()))
	}
	for _, e := range events {
		bodies, position = append(bodies, e.Envelope), e.Cursor
	}
	m := newMessage(k.webhook, position, bodies)
	for attempt := 1; ; attempt++ {
		delivery, err := k.attempt(ctx, m, len(bodies), attempt)
		switch {
		case err == nil:
			k.delivered(delivery, position)
			if time.Since(k.savedAt) >= saveEvery {
				return k.save(ctx)
			}
			return nil
		case delivery.At.IsZero(), ctx.Err() != nil:
			return err
		}
		pause := k.failed(delivery, err)
		if err := k.disableIfDue(ctx, err); err != nil {
			return err
		}
		if len(events) > 0 && k.expired(events[0]) {
			return domain.Errorf(domain.CodeCursorExpired, "the events are older than the retention")
		}
		if err := k.save(ctx); err != nil {
			return err
		}
		if !streams.Sleep(ctx, pause) {
			return ctx.Err()
		}
	}
}

// attempt posts a message once it is the webhook's turn. The delivery has no time if nothing was
// posted.
func (k *worker) attempt(
	ctx context.Context, m Message, events, attempt int,
) (domain.WebhookDelivery, error) {
	release, err := k.pool.Wait(ctx, shares.Spender{Org: k.webhook.OrgID, ID: k.webhook.ID})
	if err != nil {
		return domain.WebhookDelivery{}, err
	}
	defer release()
	if !k.held() {
		return domain.WebhookDelivery{}, errLost
	}
	return k.post(ctx, k.webhook, m, events, attempt)
}

// delivered records a request that the receiver has taken.
func (k *worker) delivered(delivery domain.WebhookDelivery, position string) {
	k.record(delivery)
	k.setFailing(false)
	k.gap = false
	k.progress.Position = position
	k.progress.FailingSince, k.progress.NextAttempt = time.Time{}, time.Time{}
	k.metrics.events.Add(float64(delivery.Events))
}

// failed records a request that the receiver has not taken, and returns the pause until the next.
// The pause is as long as the failure has lasted, so it doubles, also over restarts.
func (k *worker) failed(delivery domain.WebhookDelivery, err error) (pause time.Duration) {
	k.record(delivery)
	if k.setFailing(true); k.progress.FailingSince.IsZero() {
		k.progress.FailingSince = delivery.At
		k.logger.Warn("webhook fails", "status", delivery.Status, "error", delivery.Error)
	}
	now := k.cfg.Now()
	pause = Pause(
		now.Sub(k.progress.FailingSince), firstPause, maxPause, maxAsked, err,
	)
	k.progress.NextAttempt = now.Add(pause).UTC()
	return pause
}

func (k *worker) record(delivery domain.WebhookDelivery) {
	all := append([]domain.WebhookDelivery{delivery}, k.progress.Deliveries...)
	k.progress.Deliveries = all[:min(len(all), domain.MaxWebhookDeliveries)]
	k.unsaved, k.posted = true, true
}

// setFailing counts the webhook as failing, or not.
func (k *worker) setFailing(failing bool) {
	if failing == k.failing {
		return
	}
	if k.failing = failing; failing {
		k.metrics.failing.Inc()
	} else {
		k.metrics.failing.Dec()
	}
}

// disableIfDue disables a webhook that has failed for too long, or whose receiver wants no more
// events. The mail is queued first: both are repeated after a crash in between, and the queue takes
// the mail once.
func (k *worker) disableIfDue(ctx context.Context, failure error) error {
	cause, since := domain.WebhookFailing, k.progress.FailingSince
	switch {
	case errors.Is(failure, ErrGone):
		cause = domain.WebhookGone
	case k.cfg.Now().Sub(since) < k.cfg.DisableAfter:
		return nil
	}
	if err := k.save(ctx); err != nil {
		return err
	}
	if err := k.cfg.Mail(ctx, k.webhook, cause, since); err != nil {
		k.logger.Warn("mail about a webhook not queued", "error", err)
	}
	if err := k.cfg.Disable(ctx, k.webhook, cause); err != nil {
		return err
	}
	k.metrics.disabled.Inc()
	k.logger.Warn("webhook disabled", "cause", string(cause))
	return errDisabled
}

// expired reports whether an event is older than the retention.
func (k *worker) expired(e domain.EncodedEvent) bool {
	return k.cfg.Now().Sub(time.Unix(0, e.StoredNanos)) > k.cfg.Retention
}

// save stores the progress, if it has changed.
func (k *worker) save(ctx context.Context) error {
	if !k.unsaved {
		k.savedAt = time.Now()
		return nil
	}
	if !k.held() {
		return errLost
	}
	revision, err := k.cfg.Progress.Put(ctx, k.webhook.ID, k.progress, k.revision)
	if err != nil {
		return err
	}
	k.revision, k.unsaved, k.posted, k.savedAt = revision, false, false, time.Now()
	return nil
}

// saveLast stores the progress when the worker ends.
func (k *worker) saveLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := k.save(ctx); err != nil && !errors.Is(err, errLost) {
		k.logger.Warn("position of a webhook not stored: its last events are posted again", "error", err)
	}
}
