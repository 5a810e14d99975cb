package hublog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/telemetry"
)

// Config says how logs are kept and read. Retention and Epoch are required, the rest has
// defaults.
type Config struct {
	// Retention is how long messages are kept, and how old a cursor may be; at least MinRetention.
	Retention time.Duration
	// Replicas of each stream; 0 means 1.
	Replicas int
	// CacheBytes bounds the cache of blocks that history is read through; 0 means 64 MiB.
	CacheBytes int64
	// RingBytes bounds the newest events that all tails together hold; 0 means 64 MiB.
	RingBytes int64
	// RingEvents bounds the newest events that one tail holds; 0 means 2,000.
	RingEvents int
	// TailIdle is how long a tail outlives its last reader; 0 means 30 s.
	TailIdle time.Duration
	// Reads are connections for reads of history, so that a read that waits for a batch to reach
	// the disk holds up no append; nil means the connections that New is given.
	Reads *streams.Conns
	// SyncFolders is called with the account in which a stream was made, before Ensure returns. It
	// syncs the names of the folders that hold the stream, so that a power cut does not take it;
	// nil where the broker is another process.
	SyncFolders func(streams.Account) error
	// Epoch returns the epoch of a hub's log from memory; false means that no organization has the
	// hub.
	Epoch func(domain.HubID) (domain.Epoch, bool)
	// Refresh brings what Epoch returns up to what the directory holds at the call. It is called
	// before a cursor is rejected for its epoch; nil means that Epoch is always up to date.
	Refresh func(ctx context.Context) error
	// Lost reports whether a connection leads nowhere any more: its readers end then, so that
	// clients go elsewhere. nil means that none ever does.
	Lost func(*nats.Conn) bool
	// Now is the clock; nil means time.Now. It must agree with the broker's.
	Now func() time.Time
	// Log is where trouble goes; nil means slog.Default.
	Log *slog.Logger
	// Metrics is where metrics are registered; nil means nowhere.
	Metrics prometheus.Registerer
	// Tracer begins a span for each append; the zero value none.
	Tracer telemetry.Tracer
}

// MinRetention is the shortest retention that the broker takes.
const MinRetention = 100 * time.Millisecond

const (
	defaultCacheBytes = 64 << 20
	defaultRingBytes  = 64 << 20
	defaultRingEvents = 2000
	defaultTailIdle   = 30 * time.Second
)

// Errors beside those of the domain and the context.
var (
	// ErrConflict says that nothing was appended: the log's last event is another than expected.
	ErrConflict = streams.ErrConflict
	// ErrUnsure says that the broker's answer was lost: the records may be stored, or be stored
	// yet, wholly, or not at all. LastEvents tells.
	ErrUnsure = streams.ErrUnsure
	// ErrLogEnded ends readers of a log that was begun anew. It is a domain.Error with the code
	// cursor_expired.
	ErrLogEnded error = domain.Errorf(domain.CodeCursorExpired,
		"the hub's event log was begun anew: read its devices, then its events without a cursor")
	// ErrLost ends readers whose connection to the broker is lost. It is a domain.Error with the
	// code service_unavailable.
	ErrLost error = domain.Unavailable(
		"this server has lost the broker of the hub's event log: go on from the last cursor, " +
			"which leads to another server",
	)
	// ErrClosed says that the Logs are closed.
	ErrClosed = errors.New("hub logs are closed")
)

func (c Config) withDefaults() Config {
	if c.Replicas == 0 {
		c.Replicas = 1
	}
	if c.CacheBytes == 0 {
		c.CacheBytes = defaultCacheBytes
	}
	if c.RingBytes == 0 {
		c.RingBytes = defaultRingBytes
	}
	if c.RingEvents == 0 {
		c.RingEvents = defaultRingEvents
	}
	if c.TailIdle == 0 {
		c.TailIdle = defaultTailIdle
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

// Logs are the logs of all hubs. They are safe for concurrent use.
type Logs struct {
	cfg     Config
	metrics *metrics
	shards  []*shard
	history *history
	rings   ringBudget

	// appends holds a place for every batch under way: the broker takes 1,000 at a time.
	appends chan struct{}

	// opened is when New was called.
	opened time.Time

	knownMu sync.Mutex
	known   map[domain.HubID]struct{}

	// ctx ends what the tails do in the background.
	ctx    context.Context
	cancel context.CancelFunc
	// background counts the goroutines that work for tails; workMu keeps new ones from coming once
	// Close waits for them.
	background sync.WaitGroup
	workMu     sync.Mutex
}

// New makes Logs over connections to the broker's shards. The caller closes them with Close, before
// it closes the connections.
func New(conns *streams.Conns, cfg Config) (*Logs, error) {
	if cfg.Retention < MinRetention {
		return nil, fmt.Errorf(
			"hub logs: retention is %v; at least %v is needed", cfg.Retention, MinRetention,
		)
	}
	if cfg.Epoch == nil {
		return nil, errors.New("hub logs: Epoch is required")
	}
	cfg = cfg.withDefaults()
	reads := cfg.Reads
	if reads == nil {
		reads = conns
	}
	if len(reads.Shards) != len(conns.Shards) {
		return nil, fmt.Errorf(
			"hub logs: connections for reads of %d shards, for the rest of %d", len(reads.Shards),
			len(conns.Shards),
		)
	}
	l := &Logs{
		cfg:     cfg,
		metrics: newMetrics(cfg.Metrics),
		appends: make(chan struct{}, maxAppends),
		opened:  cfg.Now(),
		known:   map[domain.HubID]struct{}{},
	}
	l.rings.limit = cfg.RingBytes
	l.history = newHistory(l, cfg.CacheBytes)
	l.ctx, l.cancel = context.WithCancel(context.Background())
	for i, nc := range conns.Shards {
		s, err := newShard(l, nc, reads.Shards[i])
		if err != nil {
			l.Close()
			return nil, err
		}
		l.shards = append(l.shards, s)
	}
	return l, nil
}

func (l *Logs) shard(hub domain.HubID) *shard {
	return l.shards[streams.ShardOf(hub, len(l.shards))]
}

// Close ends every reader with ErrClosed and waits until nothing works in the background any more.
// It must not be called twice at once.
func (l *Logs) Close() {
	l.workMu.Lock()
	l.cancel()
	l.workMu.Unlock()
	for _, s := range l.shards {
		s.close()
	}
	l.background.Wait()
}

// epoch returns the epoch of the hub's log as it is now. The error is not_found.
func (l *Logs) epoch(hub domain.HubID) (domain.Epoch, error) {
	epoch, ok := l.cfg.Epoch(hub)
	if !ok {
		return domain.Epoch{}, domain.ErrHubNotFound()
	}
	return epoch, nil
}

// work runs f in the background; Close waits for it. After Close it does nothing.
func (l *Logs) work(f func(context.Context)) {
	l.workMu.Lock()
	defer l.workMu.Unlock()
	if l.ctx.Err() == nil {
		l.background.Go(func() { f(l.ctx) })
	}
}
