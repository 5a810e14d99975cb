package logwriter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/streams"
)

// Config configures a Router. Conns, Groups and Retention are required.
type Config struct {
	// Conns are the connections to the broker's accounts.
	Conns *streams.Conns
	// Groups is the number of journals: 1 for an embedded broker. It must never change for an
	// installation.
	Groups int
	// Retention is how long hub logs keep records; the journals keep commits somewhat longer.
	Retention time.Duration
	// Replicas is the number of copies of each journal. Defaults to 1.
	Replicas int
	// SyncFolders syncs the folders that contain the streams of an account, so that a power cut
	// cannot remove new streams. Nil when the broker is another process.
	SyncFolders func(streams.Account) error
	// ServerStarted returns when a server of the broker was last found to have started; see
	// hubviews.Config.
	ServerStarted func() time.Time
	// LogLostEnd begins a new epoch of a hub's log, of which the journal has lost what was after the
	// sequence kept, and returns the epoch that has ended, zero for none. It returns once every part of this process
	// that appends to the log knows the new one. Nil if logs have no epochs.
	LogLostEnd func(ctx context.Context, hub domain.HubID, kept uint64) (
		ended domain.EpochID, err error,
	)
	// HasSubscribers reports whether anybody subscribes to a subject in an account. Nil when the
	// broker is another process.
	HasSubscribers func(account streams.Account, subject string) bool
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
	// Logger defaults to slog.Default.
	Logger *slog.Logger
	// Metrics registers the metrics. Nil registers none.
	Metrics prometheus.Registerer
}

// WithDefaults returns a copy with defaults for what is not set.
func (c Config) WithDefaults() Config {
	c.Replicas = cmp.Or(c.Replicas, 1)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Validate returns an error that names the first invalid field.
func (c Config) Validate() error {
	switch {
	case c.Conns == nil:
		return errors.New("log writer: Conns is missing")
	case c.Groups < 1 || c.Groups > len(c.Conns.Shards):
		return fmt.Errorf(
			"log writer: Groups is %d: must be 1 to %d, the number of shards",
			c.Groups, len(c.Conns.Shards),
		)
	case c.Retention <= 0:
		return fmt.Errorf("log writer: Retention is %v: must be above 0", c.Retention)
	}
	return nil
}
