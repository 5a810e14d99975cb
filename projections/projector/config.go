package projector

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/projections/schema"
	"hubcloud/streams/shares"
	"hubcloud/streams/telemetry"
)

// Config configures a Projector.
type Config struct {
	// Database is the configuration of connections that find the tables of the read models.
	// Required.
	Database *pgx.ConnConfig `check:"set"`
	// Schema is the schema that has them. Required.
	Schema string `check:"set"`
	// Sources are the streams of the read models. Required.
	Sources `check:"valid"`
	// Committed is advanced with each commit of the directory's projection; nil for none.
	Committed *schema.Position
	// BuildTarget is called with the last sequence of the directory that a first build has to
	// reach; nil for none.
	BuildTarget func(seq uint64)
	// BuildFirst replaces empty read models with ones that are built in bulk
	// (rebuild.Control.Install). It returns nil also when another process builds them. Nil means
	// that the first build applies the events as every later one.
	BuildFirst func(ctx context.Context) error
	// LoadFrom is how many events the directory must have for BuildFirst. Defaults to 10,000.
	LoadFrom uint64
	// RetryStopped is the time after which a stopped projection tries its event again. Defaults to
	// 10 s.
	RetryStopped time.Duration `check:"at least 0"`
	// FlushInterval is the least time between two writes of a last reported state. Defaults to 1 s.
	FlushInterval time.Duration `check:"at least 0"`
	// MaxChannels is about how many channels are kept in memory. Defaults to 500,000, which take
	// about 400 MB.
	MaxChannels int `check:"positive"`
	// MaxRows is about how many last reported states a round writes. Further hubs wait for the next
	// round; each is written as a whole. Defaults to 5,000.
	MaxRows int `check:"positive"`
	// OrgChannels is about how many channels of an organization are kept. Defaults to MaxOrgChannels.
	OrgChannels int64
	// SweepInterval is the time between two searches for last reported states of hubs that were
	// released. Defaults to 1 min.
	SweepInterval time.Duration
	// Shares reports the turns of organizations; nil reports nothing.
	Shares *shares.Registry
	// Logger defaults to slog.Default().
	Logger *slog.Logger
	// Metrics registers the projector's metrics; nil means none.
	Metrics prometheus.Registerer
	// Tracer begins a span for each batch; the zero value begins none.
	Tracer telemetry.Tracer
}

// maxChannels is the default of Config.MaxChannels.
const maxChannels = 500_000

// MaxOrgChannels is about how many channels of an organization are kept: 100 hubs with as many as a
// hub may have, or 10,000 hubs with 200. In PostgreSQL they take 1.5 GB.
const MaxOrgChannels = 2_000_000

// newKept returns the Pool of the channels that are kept. Nothing bounds them in all.
func newKept(registry *shares.Registry, perOrg int64) *shares.Pool {
	return shares.NewPool(registry, shares.PoolConfig{
		Name: "reported_channels", What: "channels are kept",
		Limits: shares.Limits{Total: 1000 * perOrg, PerOrg: perOrg},
	})
}

// WithDefaults returns a copy with defaults in place of zero values.
func (c Config) WithDefaults() Config {
	c.LoadFrom = cmp.Or(c.LoadFrom, 10_000)
	c.RetryStopped = cmp.Or(c.RetryStopped, 10*time.Second)
	c.FlushInterval = cmp.Or(c.FlushInterval, time.Second)
	c.SweepInterval = cmp.Or(c.SweepInterval, time.Minute)
	c.MaxChannels = cmp.Or(c.MaxChannels, maxChannels)
	c.MaxRows = cmp.Or(c.MaxRows, maxRows)
	c.OrgChannels = cmp.Or(c.OrgChannels, MaxOrgChannels)
	c.Committed = cmp.Or(c.Committed, &schema.Position{})
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.BuildTarget == nil {
		c.BuildTarget = func(uint64) {}
	}
	return c
}
