package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/projections/readmodel"
	"hubcloud/projections/schema"
	"hubcloud/streams/directory"
)

// errNotLoaded means that the Index does not have everything yet that the directory had when Run
// began.
var errNotLoaded = errors.New("keys and hubs are not loaded yet")

// Directory is the log of the directory; *directory.Log implements it.
type Directory interface {
	// Follow calls fn with every event after a sequence, in order and without a gap, and with new
	// events as they are stored.
	Follow(ctx context.Context, after uint64, fn func(batch []directory.Recorded) error) error
	// Head returns the sequence of the last event. A caller that has read an event passes its
	// sequence as seen: if the answer is before it, Head asks the stream's leader to confirm it.
	Head(ctx context.Context, seen uint64) (uint64, error)
	// At returns the first event at a sequence or after it, and false if there is none.
	At(ctx context.Context, seq uint64) (event directory.Stored, ok bool, err error)
}

// Config configures an Index. There is no Validate: every field may be empty, and only Run needs a
// Directory.
type Config struct {
	// Directory is what the Index follows. Required by Run.
	Directory Directory
	// Store is where Run loads the Index from. Defaults to the directory.
	Store *readmodel.Store
	// Logger defaults to slog.Default().
	Logger *slog.Logger
	// Metrics registers the Index's metrics. Defaults to none.
	Metrics prometheus.Registerer
}

// WithDefaults returns a copy with defaults in place of zero values.
func (c Config) WithDefaults() Config {
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// Index has the keys, members and hubs. All methods may be called concurrently.
type Index struct {
	cfg    Config
	logger *slog.Logger

	applied schema.Position
	// loaded is closed once the Index has everything that the directory held when Run began.
	loaded     chan struct{}
	loadedOnce sync.Once

	mu        sync.RWMutex
	keys      map[string]keyAccess
	suspended suspendedKeys
	hubs      hubs
	members   members
	// activity signals that an organization has new activity.
	activity signals
	// orgIDs has one copy of each organization's id, which its keys and hubs share.
	orgIDs map[string]string
	// eventID is the id of the last event applied; empty if unknown.
	eventID string
	// unread counts the events that could not be read.
	unread           int
	onAdd, onRelease func(domain.HubID)
}

// keyAccess is a key, and the channel behind its Revoked.
type keyAccess struct {
	domain.KeyAccess
	revoke chan struct{}
}

// New returns an empty Index, which Run fills, and registers its metrics.
func New(cfg Config) *Index {
	cfg = cfg.WithDefaults()
	a := &Index{
		cfg: cfg, logger: cfg.Logger.With("projection", "access"), loaded: make(chan struct{}),
	}
	a.clear()
	a.register(cfg.Metrics)
	return a
}

// clear removes everything.
func (a *Index) clear() {
	a.hubs.changed.sendAll()
	a.activity.sendAll()
	a.keys, a.suspended = map[string]keyAccess{}, newSuspendedKeys()
	a.hubs, a.members, a.activity = newHubs(), newMembers(), signals{}
	a.orgIDs, a.eventID = map[string]string{}, ""
}

// Key returns a key that was not revoked, by its id: it may have expired. Its Revoked is closed when
// the key is revoked or changed.
func (a *Index) Key(id string) (domain.KeyAccess, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	key, ok := a.keys[id]
	return key.KeyAccess, ok
}

// Expiring returns the keys that expire after a time, and at another at the latest.
func (a *Index) Expiring(after, until time.Time) (keys []domain.KeyAccess) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for _, key := range a.keys {
		if key.ExpiresAt.After(after) && !key.ExpiresAt.After(until) {
			keys = append(keys, key.KeyAccess)
		}
	}
	return keys
}

// KeysOf returns how many keys of an organization were not revoked.
func (a *Index) KeysOf(org string) int {
	a.mu.RLock()
	defer a.mu.RUnlock()
	n := 0
	for _, key := range a.keys {
		if key.Reach.OrgID == org {
			n++
		}
	}
	return n
}

// Hub returns the access to a hub that an organization has added.
func (a *Index) Hub(id domain.HubID) (domain.HubAccess, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	hub, ok := a.hubs.access[id]
	return hub, ok
}

// Hubs returns all hubs that organizations have added, in no order.
func (a *Index) Hubs() []domain.HubID {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return slices.Collect(maps.Keys(a.hubs.access))
}

// HubsOf returns the hubs of an organization, in no order.
func (a *Index) HubsOf(org string) []domain.HubID {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.hubs.of(org)
}

// Changed returns a channel that is closed when the organization gets, moves or loses a hub after
// the call: Hub and HubsOf have the change then.
func (a *Index) Changed(org string) <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.hubs.changed.of(org)
}

// ActivityChanged returns a channel that is closed when the organization has new activity after the
// call: Applied includes the event of the directory that records it then.
func (a *Index) ActivityChanged(org string) <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.activity.of(org)
}

// OnAdd sets the function that is called with each hub that an organization adds once the Index is
// loaded: after Hub returns the hub, and before WaitFor returns. fn must not block.
func (a *Index) OnAdd(fn func(domain.HubID)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.onAdd = fn
}

// OnRelease sets the function that is called with each hub that its organization loses: after Hub
// no longer returns the hub, and before WaitFor returns. fn must not block.
func (a *Index) OnRelease(fn func(domain.HubID)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.onRelease = fn
}

// Applied returns the sequence of the last event that the Index has.
func (a *Index) Applied() uint64 {
	return a.applied.At()
}

// WaitFor returns nil once the Index has the directory up to and including seq, or ctx's error.
func (a *Index) WaitFor(ctx context.Context, seq uint64) error { return a.applied.Wait(ctx, seq) }

// Refresh returns nil once the Index has everything that the directory held at the call.
func (a *Index) Refresh(ctx context.Context) error {
	head, err := a.cfg.Directory.Head(ctx, a.Applied())
	if err != nil {
		return err
	}
	return a.WaitFor(ctx, head)
}

// Loaded returns a channel that is closed once the Index has everything that the directory held
// when Run began. Until then keys, members and hubs may be missing.
func (a *Index) Loaded() <-chan struct{} { return a.loaded }

// Ready returns nil once Loaded is closed, and an error before.
func (a *Index) Ready() error {
	select {
	case <-a.loaded:
	default:
		return errNotLoaded
	}
	return nil
}

// Unread returns how many events could not be read since Run began.
func (a *Index) Unread() int {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.unread
}

// Run loads the Index and follows the directory until ctx ends, and returns nil then. It returns an
// error only if the broker's connection was closed.
func (a *Index) Run(ctx context.Context) error {
	a.load(ctx)
	for {
		err := a.follow(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, nats.ErrConnectionClosed):
			return fmt.Errorf("access: %w", err)
		case errors.Is(err, schema.ErrOtherStream):
			a.logger.Warn(
				"read models built from another directory; loading the index from this directory",
				"error", err,
			)
			a.restart()
		default:
			a.logger.Warn("directory lost; following again", "error", err)
			schema.Pause(ctx, schema.FirstRetry)
		}
	}
}
