package live

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/httpapi/sse"
)

// maxKeepalive is the longest StreamKeepalive. Pages reconnect after 90 s without a keepalive.
const maxKeepalive = 30 * time.Second

// Config is the configuration of a Live. ReadModels, Devices, Events, Feed, Hubs and
// DisconnectReason are required.
type Config struct {
	ReadModels ReadModels
	Devices    Devices
	Events     Events
	Feed       Feed
	Hubs       Hubs
	// States reads what devices last reported. Nil means that nothing is known of the devices of
	// hubs that do not answer.
	States ReportedStates
	// DisconnectReason returns the broker's reason for the last disconnection of a hub that is
	// offline, nil if unknown.
	DisconnectReason func(hub domain.HubID) *string

	// Freshness ends the streams of a replica that is cut off. Defaults to never.
	Freshness Freshness

	// StreamLifetime is the longest that a stream lasts. Defaults to 15 minutes.
	StreamLifetime time.Duration
	// StreamKeepalive is the time between two keepalive comments, at most 30 s. Defaults to 30 s.
	StreamKeepalive time.Duration
	// StateInterval is how often a stream reads the states of its hubs. Defaults to 15 s.
	StateInterval time.Duration
	// Pace is the least time between two writes of events. Defaults to 100 ms.
	Pace time.Duration
	// StreamsPerMember is how many streams a member may have open on this replica. Defaults to 32.
	StreamsPerMember int
	// Retention is how long events are kept. Defaults to 24 hours.
	Retention time.Duration
	// Draining is closed when the service begins to stop. Defaults to never.
	Draining <-chan struct{}
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
	// Logger receives failures of streams. Defaults to slog.Default().
	Logger *slog.Logger
	// Metrics registers the package's metrics. Defaults to no registration.
	Metrics prometheus.Registerer
}

// WithDefaults returns a copy of the configuration with a value in every field that has a default.
func (c Config) WithDefaults() Config {
	c.StreamLifetime = cmp.Or(c.StreamLifetime, 15*time.Minute)
	c.StreamKeepalive = min(cmp.Or(c.StreamKeepalive, maxKeepalive), maxKeepalive)
	c.StateInterval = cmp.Or(c.StateInterval, 15*time.Second)
	c.Pace = cmp.Or(c.Pace, 100*time.Millisecond)
	c.StreamsPerMember = cmp.Or(c.StreamsPerMember, 32)
	c.Retention = cmp.Or(c.Retention, 24*time.Hour)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Live serves the portal's data about hubs. Its methods may be called concurrently.
type Live struct {
	cfg     Config
	open    *sse.Quota
	metrics *metrics
}

// New returns a Live.
func New(cfg Config) *Live {
	cfg = cfg.WithDefaults()
	return &Live{
		cfg: cfg, open: sse.NewQuota(cfg.StreamsPerMember), metrics: newMetrics(cfg.Metrics),
	}
}
