package hubbridge

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/hubbridge/ingest"
	"hubcloud/streams/telemetry"
)

// Config configures a Bridge. ReplicaID and Retention are required.
type Config struct {
	// ReplicaID ([A-Za-z0-9_-]+) names this replica. It stays the same over restarts, and no other
	// replica has it.
	ReplicaID string `check:"set"`
	// Retention is how long the hubs' event logs keep events.
	Retention time.Duration `check:"positive"`
	// Admit reports whether the disk has space for a number of bytes, before anything that a hub
	// sent is stored. Its error withholds the ack. Defaults to admitting everything.
	Admit func(bytes int) error
	// Budget bounds what each hub and organization stores and sends. Defaults to no bound.
	Budget *ingest.Budget
	// RoutesChanged returns when the connections between the broker's servers have last changed, so
	// that the broker's events about connections of hubs may be lost. Defaults to never.
	RoutesChanged func() time.Time
	// Isolated reports whether a server of the broker, by its name, is cut off from the others: acks
	// are then sent by way of another one. Defaults to never.
	Isolated func(server string) bool
	// Now returns the current time. Defaults to time.Now.
	Now func() time.Time
	// Logger defaults to slog.Default().
	Logger *slog.Logger
	// Metrics is where the bridge's metrics are registered; nil registers nothing.
	Metrics prometheus.Registerer
	// Tracer starts a span for each batch of a hub's events; the zero Tracer starts none.
	Tracer telemetry.Tracer
}

// WithDefaults returns a copy of c with the defaults for zero fields.
func (c Config) WithDefaults() Config {
	if c.Admit == nil {
		c.Admit = func(int) error { return nil }
	}
	if c.RoutesChanged == nil {
		c.RoutesChanged = func() time.Time { return time.Time{} }
	}
	if c.Isolated == nil {
		c.Isolated = func(string) bool { return false }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}
