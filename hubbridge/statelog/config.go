package statelog

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/projections/devicestate"
	"hubcloud/streams/feed"
	"hubcloud/streams/journal"
)

// Logs are the logs of hubs (feed.Logs).
type Logs interface {
	LastSequence(ctx context.Context, hub domain.HubID) (uint64, error)
	Entries(
		ctx context.Context, hub domain.HubID, from, to uint64,
	) (entries []feed.Entry, through uint64, err error)
	States(ctx context.Context, hub domain.HubID, each func(feed.Entry)) error
	Append(
		ctx context.Context, hub domain.HubID, expected uint64, records []journal.Record,
	) (last uint64, err error)
	AppendState(
		ctx context.Context, hub domain.HubID, epoch domain.EpochID, orgID string,
		payloads ...[]byte,
	) (last uint64, err error)
}

// Journals report what is stored in the logs (journal.Journal).
type Journals interface {
	Subscribe(f func(group int, commits []journal.Commit))
	Tip(hub domain.HubID) (journal.Tip, bool)
}

// Devices asks hubs (commands.Devices).
type Devices interface {
	List(ctx context.Context, hub domain.HubID) ([]domain.Device, error)
	Get(ctx context.Context, hub domain.HubID, id int64) (domain.Device, error)
}

// Hubs are the hubs that organizations have (access.Index).
type Hubs interface {
	Hubs() []domain.HubID
	Hub(id domain.HubID) (domain.HubAccess, bool)
	// Refresh returns once Hub has everything that the directory held at the call.
	Refresh(ctx context.Context) error
}

// Config configures a Keeper. The fields up to Online are required.
type Config struct {
	Logs     Logs     `check:"set"`
	Journals Journals `check:"set"`
	Devices  Devices  `check:"set"`
	Hubs     Hubs     `check:"set"`
	// Serves reports whether this replica serves a hub, and Online whether a hub is connected.
	Serves, Online func(domain.HubID) bool `check:"set"`
	// InDoubt returns hubs of whose devices something is not known, among others that this replica
	// does not serve. They are asked while they are connected. Nil means that none are.
	InDoubt func(ctx context.Context) ([]domain.HubID, error)
	// ReportFault is called with an answer of a hub that is not valid. Defaults to nothing.
	ReportFault func(hub domain.HubID, detail string)
	// Retention is how long a log keeps its records. Defaults to 24 h.
	Retention time.Duration `check:"at least 0"`
	// SnapshotEvery is how long after a snapshot the next one may be stored. Defaults to 6 h, and
	// to a quarter of a shorter retention than 24 h.
	SnapshotEvery time.Duration `check:"at least 0"`
	// SnapshotEntries is after how many entries of a log since a snapshot the next one is stored in
	// any case, so that past states of busy hubs are folded in tenths of a second. Defaults to 50,000.
	SnapshotEntries uint64
	// Delay is how long after an event a hub is asked, so that what comes together is asked for
	// once. Defaults to 1 s.
	Delay time.Duration `check:"at least 0"`
	// MinInterval is the least time between two reads of a hub in the same epoch of its log.
	// Defaults to 1 min.
	MinInterval time.Duration `check:"at least 0"`
	// DoubtEvery is how often InDoubt is called. Defaults to 15 s.
	DoubtEvery time.Duration
	// Pause is the time between two requests to a hub. Defaults to 20 ms.
	Pause time.Duration `check:"at least 0"`
	// Workers is how many hubs are asked at the same time. Defaults to 64.
	Workers int `check:"at least 0"`
	// Settle is within how long the hubs that the replica begins to serve are looked at, so that a
	// start is not slowed down. Defaults to 1 min.
	Settle time.Duration `check:"at least 0"`
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
	// Logger defaults to slog.Default().
	Logger *slog.Logger
	// Metrics registers the metrics. Defaults to none.
	Metrics prometheus.Registerer
}

// Records of devicestate fit into the log.
const _ = uint(journal.MaxState - devicestate.MaxStateBytes)

const (
	defaultRetention     = 24 * time.Hour
	defaultSnapshotEvery = 6 * time.Hour
	snapshotsInRetention = 4
	defaultWorkers       = 64
)

// WithDefaults returns a copy with defaults in place of zero values.
func (c Config) WithDefaults() Config {
	c.Retention = cmp.Or(c.Retention, defaultRetention)
	c.SnapshotEvery = cmp.Or(
		c.SnapshotEvery, min(defaultSnapshotEvery, c.Retention/snapshotsInRetention),
	)
	c.SnapshotEntries = cmp.Or(c.SnapshotEntries, 50_000)
	c.Delay = cmp.Or(c.Delay, time.Second)
	c.MinInterval = cmp.Or(c.MinInterval, time.Minute)
	c.DoubtEvery = cmp.Or(c.DoubtEvery, 15*time.Second)
	c.Pause = cmp.Or(c.Pause, 20*time.Millisecond)
	c.Workers = cmp.Or(c.Workers, defaultWorkers)
	c.Settle = cmp.Or(c.Settle, time.Minute)
	if c.ReportFault == nil {
		c.ReportFault = func(domain.HubID, string) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}
