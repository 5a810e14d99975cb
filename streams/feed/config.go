package feed

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/telemetry"
)

// readPatience bounds how long a read waits for the broker.
const readPatience = jsapi.Patience

// MinRetention is the shortest retention that the broker accepts.
const MinRetention = 100 * time.Millisecond

// Config configures Logs. Retention, Journal and Epoch are required.
type Config struct {
	// Retention is how long messages are kept and how long a cursor stays valid; at least
	// MinRetention.
	Retention time.Duration
	// Journal is where the logs are stored.
	Journal Journal `check:"set"`
	// CacheBytes bounds the cache of history. Defaults to 64 MiB.
	CacheBytes int64
	// RingBytes bounds the newest events that all tails hold together. Defaults to 64 MiB.
	RingBytes int64
	// RingEvents bounds the newest events that one tail holds. Defaults to 2,000.
	RingEvents int
	// TailIdle is how long a tail is kept after its last reader. Defaults to 30 seconds.
	TailIdle time.Duration
	// Reads are the connections for reads of history, so that long reads delay nothing else.
	// Defaults to the connections passed to New.
	Reads *streams.Conns
	// Epoch returns the epoch of a hub's log from memory; false means that no organization has the
	// hub.
	Epoch func(domain.HubID) (domain.Epoch, bool) `check:"set"`
	// Refresh brings what Epoch returns up to date with the directory. It is called before a cursor
	// is rejected for its epoch. Nil means that Epoch is always up to date.
	Refresh func(ctx context.Context) error
	// Lost reports whether a connection is cut off from the broker for long. Its readers then end
	// with ErrLost, so that clients reconnect to another server. Nil means never.
	Lost func(*nats.Conn) bool
	// Now is the clock, which must agree with the broker's. Defaults to time.Now.
	Now func() time.Time
	// Logger defaults to slog.Default.
	Logger *slog.Logger
	// Metrics registers the metrics. Nil registers none.
	Metrics prometheus.Registerer
	// Tracer starts a span for each append. The zero value starts none.
	Tracer telemetry.Tracer
}

// WithDefaults returns a copy with defaults for what is not set.
func (c Config) WithDefaults() Config {
	c.CacheBytes = cmp.Or(c.CacheBytes, 64<<20)
	c.RingBytes = cmp.Or(c.RingBytes, 64<<20)
	c.RingEvents = cmp.Or(c.RingEvents, 2000)
	c.TailIdle = cmp.Or(c.TailIdle, 30*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Validate returns an error that names the first invalid field.
func (c Config) Validate() error {
	if c.Retention < MinRetention {
		return fmt.Errorf(
			"hub logs: Retention is %v: must be at least %v", c.Retention, MinRetention,
		)
	}
	return domain.CheckFields("hub logs", c)
}
