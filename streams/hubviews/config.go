package hubviews

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
)

// Config configures Views. Conns, Index, Reader, Positions and
// Retention are required.
type Config struct {
	// Conns are the connections to the accounts that have the views.
	Conns *streams.Conns
	// Group is the number of the journal's group, from 0, of Groups groups. The views are those of
	// the hubs in the shards whose number modulo Groups is Group. Groups defaults to 1.
	Group, Groups int
	// From is the journal sequence of the last commit that is not passed to Add.
	From uint64
	// Index has the ends of the group's logs. A commit must be applied to it before New, if it lies
	// at or before From, or before it is passed to Add.
	Index *journal.Index
	// Reader reads what the views lack.
	Reader *journal.Reader
	// Positions is the bucket in which Views store the position up to which the views are synced,
	// in the key views.<Groups>.<Group>.
	Positions jsapi.Bucket
	// Retention is how long messages are kept; at least 100 ms.
	Retention time.Duration
	// Replicas is the number of copies of a view that has messages which the journal does not have.
	// All others get one copy, since the journal has what is lost with it. Defaults to 1.
	Replicas int
	// AwayDelay is how long the server of a view must be away before the view is written anew on
	// another one. Defaults to 5 minutes, so that a restart of a server moves nothing.
	AwayDelay time.Duration
	// AuditEvery is how often all views are compared with the list of streams in a cluster, whose
	// servers come and go; ten times as often while some are away. Defaults to 10 minutes.
	AuditEvery time.Duration
	// ServerStarted returns when a server of the broker was last found to have started. The views are
	// then compared at once, since the server may have lost the last messages of its streams. Defaults
	// to a function that returns the zero time.
	ServerStarted func() time.Time
	// LogLostEnd is called before a view that is longer than its log in the journal is written anew:
	// the journal has lost the log's end, and gives the sequences after kept out again. The view
	// stays as it is while LogLostEnd fails. Defaults to a function that does nothing.
	LogLostEnd func(ctx context.Context, hub domain.HubID, kept uint64) error
	// SyncFolders syncs the folders that contain the views of an account, so that a power cut
	// cannot remove new views. It is called before a position counts as synced. Nil when the broker
	// is another process.
	SyncFolders func(streams.Account) error
	// SyncDelay is how long after a message was acknowledged it counts as synced to disk: at least
	// twice the interval at which the broker syncs. Defaults to 5 minutes.
	SyncDelay time.Duration
	// HasSubscribers reports whether anybody subscribes to a subject of the feed in an account.
	// Records that nobody would get are not published. Nil publishes all: it is for a broker in
	// another process, which cannot be asked.
	HasSubscribers func(account streams.Account, subject string) bool
	// Linger is how long records are collected before they are sent, unless somebody waits for them
	// or a quarter of the backlog is used. While the feed has subscribers it is FeedLinger at most.
	// They default to 1 s and 100 ms.
	Linger, FeedLinger time.Duration
	// MaxBacklogBytes bounds the commits that are not in the views yet. Defaults to 64 MiB.
	MaxBacklogBytes int
	// Now is the clock by which the lifetime of repaired messages is measured. Defaults to
	// time.Now.
	Now func() time.Time
	// Logger defaults to slog.Default.
	Logger *slog.Logger
	// Metrics may be shared by several Views. Defaults to metrics that nobody reads.
	Metrics *Metrics
}

// minRetention is the shortest retention that the broker accepts.
const minRetention = 100 * time.Millisecond

// WithDefaults returns a copy with defaults for what is not set.
func (c Config) WithDefaults() Config {
	c.Groups = cmp.Or(c.Groups, 1)
	c.Replicas = cmp.Or(c.Replicas, 1)
	c.AwayDelay = cmp.Or(c.AwayDelay, 5*time.Minute)
	c.AuditEvery = cmp.Or(c.AuditEvery, 10*time.Minute)
	c.SyncDelay = cmp.Or(c.SyncDelay, 5*time.Minute)
	c.Linger = cmp.Or(c.Linger, time.Second)
	c.FeedLinger = min(cmp.Or(c.FeedLinger, 100*time.Millisecond), c.Linger)
	c.MaxBacklogBytes = cmp.Or(c.MaxBacklogBytes, 64<<20)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.LogLostEnd == nil {
		c.LogLostEnd = func(context.Context, domain.HubID, uint64) error { return nil }
	}
	if c.ServerStarted == nil {
		c.ServerStarted = func() time.Time { return time.Time{} }
	}
	if c.Metrics == nil {
		c.Metrics = NewMetrics(nil)
	}
	return c
}

// Validate returns an error that names the first invalid field.
func (c Config) Validate() error {
	switch {
	case c.Conns == nil:
		return errors.New("hub views: Conns is missing")
	case c.Groups < 1 || c.Groups > len(c.Conns.Shards):
		return fmt.Errorf(
			"hub views: Groups is %d: must be 1 to %d, the number of shards", c.Groups,
			len(c.Conns.Shards),
		)
	case c.Group < 0 || c.Group >= c.Groups:
		return fmt.Errorf("hub views: Group is %d: must be 0 to %d", c.Group, c.Groups-1)
	case c.Index == nil:
		return errors.New("hub views: Index is missing")
	case c.Reader == nil:
		return errors.New("hub views: Reader is missing")
	case c.Positions.Name() == "":
		return errors.New("hub views: Positions is missing")
	case c.Retention < minRetention:
		return fmt.Errorf(
			"hub views: Retention is %v: must be at least %v", c.Retention, minRetention,
		)
	case c.Replicas < 1:
		return fmt.Errorf("hub views: Replicas is %d: must be at least 1", c.Replicas)
	}
	return nil
}
