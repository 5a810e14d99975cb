package httpapi

import (
	"context"
	"sync"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/webhook"
	"hubcloud/streams"
)

// deliveries is where a webhook.Deliverer that serves no webhook keeps its progress.
type deliveries struct {
	mu       sync.Mutex
	progress map[string]domain.WebhookProgress
}

func (d *deliveries) Get(
	_ context.Context, id string,
) (domain.WebhookProgress, uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.progress[id], 1, nil
}

func (d *deliveries) Put(
	_ context.Context, id string, p domain.WebhookProgress, _ uint64,
) (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.progress[id] = p
	return 1, nil
}

func (d *deliveries) Delete(_ context.Context, id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.progress, id)
	return nil
}

func (*deliveries) Follow(
	context.Context, string, domain.EventFilter, string,
) (webhook.Reader, error) {
	return nil, domain.ErrEventsClosed
}

func (*deliveries) FollowSince(
	context.Context, string, domain.EventFilter, time.Time,
) (webhook.Reader, error) {
	return nil, domain.ErrEventsClosed
}

// newWebhooks returns what tests and describes webhooks, and delivers nothing.
func newWebhooks(t testing.TB) *webhook.Deliverer {
	t.Helper()
	vault, err := streams.NewVault(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	none := &deliveries{progress: map[string]domain.WebhookProgress{}}
	d, err := webhook.NewDeliverer(webhook.DelivererConfig{
		Feeds: none, Progress: none, Vault: webhook.Vault{Vault: vault}, Private: true, Parts: 1, Retention: time.Hour,
		Follow: func(context.Context, func(string, domain.WebhooksState)) error { return nil },
		Disable: func(context.Context, domain.Webhook, domain.WebhookDisableCause) error {
			return nil
		},
		Mail: func(
			context.Context, domain.Webhook, domain.WebhookDisableCause, time.Time,
		) error {
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}
