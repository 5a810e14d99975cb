package httpapi

import (
	"context"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/webhook"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// noDeliveries is the progress of webhooks of which none has been delivered.
type noDeliveries struct {
	webhook.Feeds
	webhook.Progress
}

func (noDeliveries) Get(context.Context, string) (p domain.WebhookProgress, rev uint64, err error) {
	return p, 0, nil
}

func (noDeliveries) Delete(context.Context, string) error { return nil }

// newWebhooks returns what tests and describes webhooks, and delivers nothing.
func newWebhooks(t testing.TB) *webhook.Deliverer {
	t.Helper()
	vault, err := streams.NewVault(make([]byte, 32))
	streamstest.Must(t, err)
	d, err := webhook.NewDeliverer(webhook.DelivererConfig{
		Feeds: noDeliveries{}, Progress: noDeliveries{}, Vault: webhook.Vault{Vault: vault},
		Private: true, Parts: 1, Retention: time.Hour,
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
	streamstest.Must(t, err)
	return d
}
