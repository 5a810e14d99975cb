package webhook

import (
	"context"
	"errors"
	"net/http"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/shares"
)

// Deliverer posts events to webhooks. It is safe for concurrent use.
type Deliverer struct {
	cfg       DelivererConfig
	metrics   *metrics
	transport http.RoundTripper
	// pool has the requests under way, and tests counts what is only tried.
	pool  *shares.Pool
	tests *shares.Rate[string]

	// enabled are the webhooks that are delivered, by their ids.
	enabled *streams.Tasks[domain.Webhook]
}

// NewDeliverer returns a Deliverer, and registers its metrics.
func NewDeliverer(cfg DelivererConfig) (*Deliverer, error) {
	cfg = cfg.WithDefaults()
	if err := domain.CheckFields("webhooks", cfg); err != nil {
		return nil, err
	}
	return &Deliverer{
		cfg: cfg, metrics: newMetrics(cfg.Metrics), transport: newTransport(cfg.Private),
		pool: shares.NewPool(cfg.Shares, shares.PoolConfig{
			Name: "webhook_requests", What: "requests to webhooks are under way", Of: "webhook",
			Limits: shares.Limits{Total: requests, PerID: 1, Waiting: domain.MaxWebhooks},
		}),
		tests: shares.NewRate[string](
			cfg.Shares, shares.Hourly("webhook_tests", testsPerHour), cfg.Now(),
		),
		enabled: streams.NewTasks[domain.Webhook](),
	}, nil
}

// CheckURL returns an invalid_request for an address that nothing is posted to.
func (d *Deliverer) CheckURL(url string) error { return checkURL(url, d.cfg.Private) }

// Seal returns a new signing secret of a webhook, sealed.
func (d *Deliverer) Seal(webhookID string) []byte { return d.cfg.Vault.NewSecret(webhookID) }

// Reveal returns the newest signing secret of a webhook, to show it once.
func (d *Deliverer) Reveal(w domain.Webhook) (string, error) {
	return d.cfg.Vault.Reveal(w.ID, w.Secrets[0].Sealed)
}

// Progress returns how far the deliveries of a webhook have come.
func (d *Deliverer) Progress(ctx context.Context, w domain.Webhook) (domain.WebhookProgress, error) {
	p, _, err := d.cfg.Progress.Get(ctx, w.ID)
	return current(p, w), err
}

// Forget removes how far the deliveries of a webhook, which was deleted, have come.
func (d *Deliverer) Forget(ctx context.Context, id string) {
	if err := d.cfg.Progress.Delete(ctx, id); err != nil {
		d.cfg.Logger.Warn("position of a deleted webhook not removed", "webhook_id", id, "error", err)
	}
}

// current returns what still counts of a progress that was stored for the webhook.
func current(p domain.WebhookProgress, w domain.Webhook) domain.WebhookProgress {
	if !p.StartedAt.Equal(w.Start.At) {
		p.StartedAt, p.Position = w.Start.At, w.Start.After
	}
	if p.FailingSince.Before(w.EnabledAt) || !w.Enabled() {
		p.NextAttempt = time.Time{}
	}
	if p.FailingSince.Before(w.EnabledAt) {
		p.FailingSince = time.Time{}
	}
	return p
}

// Test posts an event webhook.test, once, and returns what became of it. It returns rate_limited
// for one test too many.
func (d *Deliverer) Test(ctx context.Context, w domain.Webhook) (domain.WebhookDelivery, error) {
	now := d.cfg.Now()
	if a := d.tests.Take(w.OrgID, now); !a.Granted {
		return domain.WebhookDelivery{}, domain.RateLimited(
			a.Next, "webhooks were tested %d times within an hour; no more are allowed", testsPerHour,
		)
	}
	event := marker("webhook.test", now, `{}`)
	delivery, _ := d.post(ctx, w, newMessage(w, "", [][]byte{event}), 1, 1)
	return delivery, nil
}

// post posts a message once.
func (d *Deliverer) post(
	ctx context.Context, w domain.Webhook, m Message, events, attempt int,
) (domain.WebhookDelivery, error) {
	begun := time.Now()
	delivery := domain.WebhookDelivery{
		MessageID: m.ID, At: d.cfg.Now().UTC(), Events: events, Attempt: attempt,
	}
	secrets, err := d.cfg.Vault.open(w.ID, w.SecretsAt(delivery.At))
	if err == nil {
		var receiver *Receiver
		if receiver, err = NewReceiver(Config{
			URL: w.URL, Secrets: secrets, UserAgent: d.cfg.UserAgent, Timeout: requestTimeout,
			Grace: grace, Transport: d.transport,
		}); err == nil {
			delivery.Status, err = receiver.Post(ctx, m)
		}
	}
	delivery.Duration = time.Since(begun).Round(time.Millisecond)
	d.metrics.duration.Observe(delivery.Duration.Seconds())
	outcome := outcomeDelivered
	if err != nil {
		delivery.Error = errorText(err)
		if outcome = outcomeRejected; delivery.Status == 0 {
			outcome = outcomeUnanswered
		}
	}
	d.metrics.requests.WithLabelValues(outcome).Inc()
	return delivery, err
}

// Follow learns of webhooks and their changes until ctx ends.
func (d *Deliverer) Follow(ctx context.Context) error {
	return d.cfg.Follow(ctx, func(org string, all domain.WebhooksState) {
		enabled := map[string]domain.Webhook{}
		for _, w := range all {
			if w.Enabled() {
				enabled[w.ID] = w
			}
		}
		d.enabled.Set(org, enabled)
	})
}

// Serve delivers for the webhooks of a part, until ctx ends. held reports whether the lease of the
// part is still held.
func (d *Deliverer) Serve(ctx context.Context, part int, held func() bool) error {
	return d.enabled.Serve(
		ctx, part, d.cfg.Parts, func(ctx context.Context, _ string, w domain.Webhook) {
			d.run(ctx, w, held)
		},
	)
}

// errLost is why a process does not go on: another one delivers.
var errLost = errors.New("the lease is lost")
