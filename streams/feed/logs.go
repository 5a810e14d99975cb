package feed

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// Errors of this package, beside errors of the domain, the broker and the context.
var (
	// ErrConflict means that nothing was appended: the log's last event is not the expected one.
	ErrConflict = jsapi.ErrConflict
	// ErrOutcomeUnknown means that the broker's answer was lost: either all records are stored, now
	// or later, or none. LastEvents shows which.
	ErrOutcomeUnknown = jsapi.ErrOutcomeUnknown
	// ErrEpochEnded ends the readers of a log when a new epoch begins. It is a domain.Error with
	// the code cursor_expired.
	ErrEpochEnded error = domain.Errorf(domain.CodeCursorExpired,
		"a new event log has begun for the hub: read its devices, then its events without a cursor")
	// ErrLost ends the readers of a server that is cut off from the broker. It is a domain.Error
	// with the code service_unavailable.
	ErrLost error = domain.Unavailable(
		"this server is cut off from the hub's event log: " +
			"continue from the last cursor at another server",
	)
)

// Logs are the event logs of all hubs. All methods may be called at any time, from any goroutine.
type Logs struct {
	cfg     Config
	metrics *metrics
	shards  []*shard
	cache   *blockCache
	rings   RingBudget
	// observer gets the events of all logs; nil for none.
	observer atomic.Pointer[Observer]
	// unresponsive has the hubs whose streams did not answer a moment ago.
	unresponsive unresponsive

	// ctx is the context of the goroutines started by work, canceled by Close. It is a field
	// because the callers whose requests start these goroutines do not wait for them: no caller's
	// context would last long enough.
	ctx    context.Context
	cancel context.CancelFunc
	// background counts the goroutines started by work. workMu keeps new ones from starting while
	// Close waits.
	background sync.WaitGroup
	workMu     sync.Mutex
}

// New returns Logs over connections to the broker's shards. The caller must call Close before it
// closes the connections.
func New(conns *streams.Conns, cfg Config) (*Logs, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	reads := cfg.Reads
	if reads == nil {
		reads = conns
	}
	if len(reads.Shards) != len(conns.Shards) {
		return nil, fmt.Errorf(
			"hub logs: Reads has connections to %d shards: must be %d", len(reads.Shards),
			len(conns.Shards),
		)
	}
	l := &Logs{
		cfg:     cfg,
		metrics: newMetrics(cfg.Metrics),
	}
	l.rings.limit = cfg.RingBytes
	l.cache = newBlockCache(cfg.CacheBytes, l.metrics)
	l.ctx, l.cancel = context.WithCancel(context.Background())
	for i, nc := range conns.Shards {
		l.shards = append(l.shards, newShard(l, nc, reads.Shards[i], conns.Cloud))
	}
	cfg.Journal.Subscribe(l.received)
	return l, nil
}

// Close ends every reader with domain.ErrEventsClosed and waits for all background work. It must
// not be called twice at the same time.
func (l *Logs) Close() {
	l.workMu.Lock()
	l.cancel()
	l.workMu.Unlock()
	for _, s := range l.shards {
		s.close()
	}
	l.background.Wait()
}

// Released ends the readers of a hub that was released from its organization with not_found. It
// must be called after Config.Epoch has ceased to return an epoch for the hub.
func (l *Logs) Released(hub domain.HubID) {
	s := l.shard(hub)
	if t := s.tail(hub); t != nil {
		s.remove(t, domain.ErrHubNotFound())
	}
}

// epoch returns the current epoch of the hub's log. The error is not_found.
func (l *Logs) epoch(hub domain.HubID) (domain.Epoch, error) {
	epoch, ok := l.cfg.Epoch(hub)
	if !ok {
		return domain.Epoch{}, domain.ErrHubNotFound()
	}
	return epoch, nil
}

func (l *Logs) shard(hub domain.HubID) *shard {
	return l.shards[streams.ShardOf(hub, len(l.shards))]
}

// work runs f in a goroutine that Close waits for. After Close it does nothing.
func (l *Logs) work(f func(context.Context)) {
	l.workMu.Lock()
	defer l.workMu.Unlock()
	if l.ctx.Err() == nil {
		l.background.Go(func() { f(l.ctx) })
	}
}
