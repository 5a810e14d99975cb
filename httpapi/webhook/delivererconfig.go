package webhook

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/shares"
)

const (
	// requestTimeout bounds a request with its answer, and connectTimeout each step of a connection.
	requestTimeout, connectTimeout = 15 * time.Second, 5 * time.Second
	// requests is how many requests are under way at once, of all organizations.
	requests = 128
	// testsPerHour is how many tests of webhooks an organization may send.
	testsPerHour = 120
	// maxEvents is the most events of a request.
	maxEvents = 100
	// firstPause and maxPause bound the pause after a failure of a webhook.
	firstPause, maxPause = time.Second, 10 * time.Minute
	// maxAsked is the longest pause that a receiver can ask for.
	maxAsked = time.Hour
	// saveEvery is how often a position is stored while events are delivered, and saveIdle how often
	// that of a webhook is while none are.
	saveEvery, saveIdle = time.Second, time.Minute
	// grace is how long a request under way may take when its webhook changes or the service stops.
	grace = time.Second
)

// DelivererConfig configures a Deliverer. Fields without a default are required.
type DelivererConfig struct {
	// Feeds reads the feeds of organizations.
	Feeds Feeds `check:"set"`
	// Progress stores how far webhooks have come.
	Progress Progress `check:"set"`
	// Disable disables a webhook, unless it has changed since it was read, and Mail queues the mails
	// that tell the owners and admins. since is when the webhook began to fail.
	Disable func(
		ctx context.Context, was domain.Webhook, cause domain.WebhookDisableCause,
	) error `check:"set"`
	Mail func(
		ctx context.Context, w domain.Webhook, cause domain.WebhookDisableCause, since time.Time,
	) error `check:"set"`
	// Follow calls fn with the webhooks of organizations, as they are and as they change, until ctx
	// ends.
	Follow func(
		ctx context.Context, fn func(orgID string, all domain.WebhooksState),
	) error `check:"set"`
	// Vault opens the secrets.
	Vault Vault
	// Private allows addresses of this machine and of private networks.
	Private   bool
	UserAgent string
	// Parts is how many parts the webhooks are divided into, each of which has a lease.
	Parts int `check:"positive"`
	// Retention is how long events are kept.
	Retention time.Duration `check:"positive"`
	// DisableAfter is how long a webhook fails before it is disabled. Defaults to
	// domain.WebhookDisableAfter.
	DisableAfter time.Duration
	// Shares reports the requests under way; nil reports nothing.
	Shares *shares.Registry
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
	// Logger defaults to slog.Default().
	Logger *slog.Logger
	// Metrics registers the metrics; nil means none.
	Metrics prometheus.Registerer
}

// Feeds has the feeds of organizations. The cursor of an event is its position.
type (
	Feeds  = streams.EventFeeds
	Reader = streams.EventReader
)

// Progress stores how far webhooks have come.
type Progress interface {
	// Get returns the progress of a webhook, with the revision that Put expects.
	Get(ctx context.Context, id string) (p domain.WebhookProgress, revision uint64, err error)
	// Put stores it, and returns its new revision. It fails if another process has stored one.
	Put(
		ctx context.Context, id string, p domain.WebhookProgress, revision uint64,
	) (uint64, error)
	// Delete removes it.
	Delete(ctx context.Context, id string) error
}

// WithDefaults returns a copy with defaults in place of zero values.
func (c DelivererConfig) WithDefaults() DelivererConfig {
	c.DisableAfter = cmp.Or(c.DisableAfter, domain.WebhookDisableAfter)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}
