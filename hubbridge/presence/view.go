package presence

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/streams/jsapi"
)

// BucketName is the name of the presence bucket.
const BucketName = "presence"

// View holds the presence bucket in memory, moments behind the bucket. It is safe for concurrent
// use.
type View struct {
	cloud   *nats.Conn
	kv      jetstream.KeyValue // for the watch
	bucket  jsapi.Bucket       // for reads that must not be stale
	logger  *slog.Logger
	loaded  chan struct{}
	metrics *metrics

	mu   sync.RWMutex
	hubs map[domain.HubID]domain.Presence
}

// NewView returns a view of the presence bucket kv; cloud is the connection to the bucket's
// account. The view is empty until Run has loaded it. A nil logger means slog.Default(). NewView
// registers the metrics of the view and of its watchers with r, unless r is nil.
func NewView(
	cloud *nats.Conn, kv jetstream.KeyValue, logger *slog.Logger, r prometheus.Registerer,
) *View {
	if logger == nil {
		logger = slog.Default()
	}
	return &View{
		cloud:   cloud,
		kv:      kv,
		bucket:  jsapi.NewBucket(cloud, BucketName),
		logger:  logger,
		loaded:  make(chan struct{}),
		metrics: newMetrics(r),
		hubs:    make(map[domain.HubID]domain.Presence),
	}
}

// Run follows the bucket until ctx ends, and returns ctx's error. Any other error means that the
// bucket could not be watched.
func (v *View) Run(ctx context.Context) error {
	loaded := sync.OnceFunc(func() { close(v.loaded) })
	return jsapi.Watcher{Conn: v.cloud, KV: v.kv, Logger: v.logger}.Watch(ctx, func(u jsapi.Update) {
		switch {
		case u.Loaded:
			loaded()
		case u.Entry != nil && u.Entry.Operation() == jetstream.KeyValuePut:
			v.update(u.Entry)
		}
	})
}

// update stores the presence of one hub.
func (v *View) update(entry jetstream.KeyValueEntry) {
	var p domain.Presence
	if err := json.Unmarshal(entry.Value(), &p); err != nil {
		v.logger.Error("presence record unreadable", "hub_id", entry.Key(), "error", err)
		return
	}
	hub := domain.HubID(entry.Key())
	v.mu.Lock()
	defer v.mu.Unlock()
	before, known := v.hubs[hub]
	v.hubs[hub] = p
	if !known {
		v.metrics.hubs.Inc()
	}
	switch {
	case p.Online && !before.Online:
		v.metrics.online.Inc()
	case !p.Online && before.Online:
		v.metrics.online.Dec()
	}
}

// Loaded returns a channel that is closed once the view has every record that the bucket held when
// Run began.
func (v *View) Loaded() <-chan struct{} { return v.loaded }

// Get returns the presence of a hub; false when the hub has never connected.
func (v *View) Get(hub domain.HubID) (domain.Presence, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	p, ok := v.hubs[hub]
	return p, ok
}

// All returns the presence of every hub that has ever connected, in no order.
func (v *View) All() []domain.Presence {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return slices.Collect(maps.Values(v.hubs))
}

// Online reports whether a hub is connected.
func (v *View) Online(hub domain.HubID) bool {
	p, ok := v.Get(hub)
	return ok && p.Online
}

// Fetch returns the presence of a hub from the bucket itself, with every transition that was
// written before the call; false when the hub has never connected.
func (v *View) Fetch(ctx context.Context, hub domain.HubID) (domain.Presence, bool, error) {
	var p domain.Presence
	entry, err := v.bucket.GetJSON(ctx, string(hub), &p)
	return p, entry.Exists(), err
}

// onlineConnections returns the connections of all hubs that are online and for which keep returns
// true.
func (v *View) onlineConnections(keep func(domain.HubID) bool) map[domain.HubID]domain.Connection {
	v.mu.RLock()
	defer v.mu.RUnlock()
	all := make(map[domain.HubID]domain.Connection)
	for hub, p := range v.hubs {
		if p.Online && keep(hub) {
			all[hub] = p.Connection
		}
	}
	return all
}
