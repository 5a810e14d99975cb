package views

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/journal"
)

// Config configures Views. Conns, Journal, Retention and IsReleased are required.
type Config struct {
	// Conns are the connections to the accounts that have the views.
	Conns *streams.Conns `check:"set"`
	// Journal has what the views are written from.
	Journal *journal.Journal `check:"set"`
	// Retention is how long messages are kept; at least 100 ms.
	Retention time.Duration
	// AwayDelay is how long the server of a view must be away before the view is written anew on
	// another one. Defaults to 5 minutes, so that a restart of a server moves nothing.
	AwayDelay time.Duration
	// AuditEvery is how often all views are compared with the list of streams in a cluster, whose
	// servers come and go; ten times as often while some are away. Defaults to 10 minutes.
	AuditEvery time.Duration
	// ServerStarted returns when a server of the broker was last found to have started. The views
	// are then compared at once, since the server may have lost the last messages of its streams.
	// Defaults to a function that returns the zero time.
	ServerStarted func() time.Time
	// LostEnd begins a new epoch of a hub's log of which the journal has lost what was after the
	// sequence kept: it gives these sequences out again. It returns the epoch that has ended, zero
	// for none, once every part of this process that appends to the log knows the new one. The view
	// stays as it is while LostEnd fails. Defaults to a function that does nothing.
	LostEnd func(ctx context.Context, hub domain.HubID, kept uint64) (
		ended domain.EpochID, err error,
	)
	// IsReleased reports whether no organization has a hub any more. Nobody may read what such a hub
	// has recorded, so its view is emptied.
	IsReleased func(ctx context.Context, hub domain.HubID) (bool, error) `check:"set"`
	// HasSubscribers reports whether anybody subscribes to a subject of the feed in an account.
	// Records that nobody would get are not published. Nil publishes all: it is for a broker in
	// another process, which cannot be asked.
	HasSubscribers func(account streams.Account, subject string) bool
	// Linger is how long records are collected before they are sent, unless a quarter of the
	// backlog is used: a view that gets several at once costs much less for each. While the feed has
	// subscribers it is FeedLinger at most. They default to 5 s and 100 ms.
	Linger, FeedLinger time.Duration
	// MaxBacklogBytes bounds the commits in memory that are not in the views yet. Defaults to 64
	// MiB.
	MaxBacklogBytes int
	// Now is the clock by which the lifetime of rewritten messages is measured. Defaults to
	// time.Now.
	Now func() time.Time
	// Logger defaults to slog.Default.
	Logger *slog.Logger
	// Metrics registers the metrics. Nil registers none.
	Metrics prometheus.Registerer
}

// minRetention is the shortest retention that the broker accepts.
const minRetention = 100 * time.Millisecond

// WithDefaults returns a copy with defaults for what is not set.
func (c Config) WithDefaults() Config {
	c.AwayDelay = cmp.Or(c.AwayDelay, 5*time.Minute)
	c.AuditEvery = cmp.Or(c.AuditEvery, 10*time.Minute)
	c.Linger = cmp.Or(c.Linger, 5*time.Second)
	c.FeedLinger = min(cmp.Or(c.FeedLinger, 100*time.Millisecond), c.Linger)
	c.MaxBacklogBytes = cmp.Or(c.MaxBacklogBytes, 64<<20)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.LostEnd == nil {
		c.LostEnd = func(context.Context, domain.HubID, uint64) (domain.EpochID, error) {
			return domain.EpochID{}, nil
		}
	}
	if c.ServerStarted == nil {
		c.ServerStarted = func() time.Time { return time.Time{} }
	}
	return c
}

// Validate returns an error that names the first invalid field.
func (c Config) Validate() error {
	if c.Retention < minRetention {
		return fmt.Errorf("views: Retention is %v: must be at least %v", c.Retention, minRetention)
	}
	return domain.CheckFields("views", c)
}
