package live

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/httpapi/sse"
)

// ReadModels answers what an organization has.
type ReadModels interface {
	// Hubs lists hubs by id, only those at a site when that is not nil, after the one named by
	// startingAfter.
	Hubs(
		ctx context.Context, org string, site *string, limit int, startingAfter string,
	) (domain.Page[domain.Hub], error)
	// Hub gives one with everything; a hub that is not the organization's is not_found.
	Hub(ctx context.Context, org string, hub domain.HubID) (domain.Hub, error)
	// DeviceLabels gives the names and rooms that were set for a hub's devices, by device id.
	DeviceLabels(
		ctx context.Context, org string, hub domain.HubID,
	) (map[int64]domain.DeviceLabel, error)
}

// Devices asks hubs about their devices, live.
type Devices interface {
	List(ctx context.Context, hub domain.HubID) ([]domain.Device, error)
	Get(ctx context.Context, hub domain.HubID, device int64) (domain.Device, error)
}

// Events reads hubs' event logs.
type Events interface {
	// Page gives the first limit events after the cursor, or the oldest when after is "".
	Page(ctx context.Context, hub domain.HubID, after string, limit int) (domain.EventPage, error)
	// At gives a cursor after which the events stand that were stored at t or later.
	At(ctx context.Context, hub domain.HubID, t time.Time) (string, error)
	// Group begins to follow nothing: hubs are added to it.
	Group() EventGroup
}

// EventGroup follows the logs of several hubs. It is used by one goroutine.
type EventGroup interface {
	// Follow adds a hub, from behind the cursor after, or from its log's end when that is "".
	Follow(ctx context.Context, hub domain.HubID, after string) error
	// Leave takes a hub out.
	Leave(hub domain.HubID)
	// Next gives at most limit events of one hub; none when there are none of any yet. After an
	// error that hub has no turn until it is followed again. ErrEventsClosed ends all of them.
	Next(limit int) (domain.HubID, []domain.EncodedEvent, error)
	// Ready has something once Next may have.
	Ready() <-chan struct{}
	// Position gives the cursor to go on from with a hub.
	Position(hub domain.HubID) string
	Close()
}

// Freshness tells whether who is a member of what is still so.
type Freshness interface {
	// Fresh reports whether it is at this moment.
	Fresh() bool
	// Confirm returns nil once it is, at once if it is now. Otherwise the error is
	// service_unavailable.
	Confirm(ctx context.Context) error
	// Lost returns a channel that is closed once the replica is cut off.
	Lost() <-chan struct{}
}

// Config is what pages about hubs need. All but the fields with a default must be given.
type Config struct {
	ReadModels ReadModels
	Devices    Devices
	Events     Events
	// DisconnectReason says why a hub that is offline has gone, in the broker's words; nil when
	// nobody knows.
	DisconnectReason func(hub domain.HubID) *string

	// Freshness ends streams on a replica that is cut off; nil: none ever is.
	Freshness Freshness

	// StreamLifetime is the longest that a stream lasts, StreamKeepalive the longest that it is
	// silent, 30 s at most. 0 stands for 15 minutes and 30 s.
	StreamLifetime  time.Duration
	StreamKeepalive time.Duration
	// StateInterval is how often a stream looks at all states again. 0 stands for 15 s.
	StateInterval time.Duration
	// Pace is the least time between two writes of events. 0 stands for 100 ms.
	Pace time.Duration
	// StreamsPerMember is how many streams a member may have open on this replica. 0 stands for 32.
	StreamsPerMember int
	// Retention is how long events are kept. 0 stands for 24 hours.
	Retention time.Duration
	// Draining is closed when the service begins to stop. nil: never.
	Draining <-chan struct{}
	// Now is the clock; nil stands for time.Now.
	Now func() time.Time
	// Log gets what failed; nil discards it.
	Log *slog.Logger
	// Metrics is where the package's metrics are registered; nil: nowhere.
	Metrics prometheus.Registerer
}

func (c Config) withDefaults() Config {
	for value, standard := range map[*time.Duration]time.Duration{
		&c.StreamLifetime: 15 * time.Minute, &c.StreamKeepalive: 30 * time.Second,
		&c.StateInterval: 15 * time.Second,
		&c.Pace:          100 * time.Millisecond, &c.Retention: 24 * time.Hour,
	} {
		if *value <= 0 {
			*value = standard
		}
	}
	// Pages take a stream for dead that is silent for three times as long as the standard.
	c.StreamKeepalive = min(c.StreamKeepalive, 30*time.Second)
	if c.StreamsPerMember <= 0 {
		c.StreamsPerMember = 32
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Live is what the pages share. Its methods may be called by several goroutines at once.
type Live struct {
	Config
	open    *sse.Quota
	metrics *metrics
}

// New makes a Live.
func New(cfg Config) *Live {
	cfg = cfg.withDefaults()
	return &Live{
		Config: cfg, open: sse.NewQuota(cfg.StreamsPerMember), metrics: newMetrics(cfg.Metrics),
	}
}
