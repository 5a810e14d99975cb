package statemodel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/streams/journal"
)

// Config configures a Projector. Database and Journal are required.
type Config struct {
	// Database is the configuration of connections to the database of the read models.
	Database *pgx.ConnConfig
	// Journal is the journals of the installation.
	Journal *journal.Journal
	// FlushInterval is the least time between two writes of a row. Defaults to 1 s.
	FlushInterval time.Duration
	// MaxChannels is about how many channels are kept in memory. Defaults to 500,000, which take
	// about 400 MB.
	MaxChannels int
	// SweepInterval is the time between two searches for rows of hubs that were released. Defaults
	// to 1 min.
	SweepInterval time.Duration
	// DirectoryHead returns the last sequence of the directory; seen is one that is known to have
	// been stored. Rows are deleted only while the read models have the whole directory. Nil means
	// that none are deleted.
	DirectoryHead func(ctx context.Context, seen uint64) (uint64, error)
	// Logger defaults to slog.Default().
	Logger *slog.Logger
	// Metrics registers the metrics; nil means none.
	Metrics prometheus.Registerer
}

// WithDefaults returns a copy with defaults in place of zero values.
func (c Config) WithDefaults() Config {
	c.FlushInterval = cmp.Or(c.FlushInterval, time.Second)
	c.SweepInterval = cmp.Or(c.SweepInterval, time.Minute)
	c.MaxChannels = cmp.Or(c.MaxChannels, 500_000)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// Validate returns an error that names the first invalid field.
func (c Config) Validate() error {
	switch {
	case c.Database == nil:
		return errors.New("state model: Database: must not be nil")
	case c.Journal == nil:
		return errors.New("state model: Journal: must not be nil")
	case c.FlushInterval < 0:
		return fmt.Errorf(
			"state model: FlushInterval: is %s, must not be negative", c.FlushInterval,
		)
	case c.MaxChannels < 1:
		return fmt.Errorf("state model: MaxChannels: is %d, must be at least 1", c.MaxChannels)
	}
	return nil
}
