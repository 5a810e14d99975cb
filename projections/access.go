package projections

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
)

// ErrNotLoaded says that Access has not caught up with the directory since it began.
var ErrNotLoaded = errors.New("keys and hubs are not loaded yet")

// Access is what requests are let in by: which keys are in force, who is a member of which
// organization, and whose each hub is and where its event log begins. It is kept in memory by every
// replica, some 200 bytes a hub, and follows the directory itself, a few milliseconds behind. All
// methods can be called at any time, from any goroutine.
type Access struct {
	store *Store
	dir   Directory
	log   *slog.Logger

	applied progress
	// loaded is closed once it has everything that was in the directory when Run began.
	loaded     chan struct{}
	loadedOnce sync.Once

	mu      sync.RWMutex
	keys    map[string]keyAccess
	hubs    map[domain.HubID]domain.HubAccess
	orgs    map[string]string // every organization's id once, shared by its keys and hubs
	people  people
	refused refusedKeys
	eventID string // that of the last event applied, if it is known
	// unread counts the events that it could not read.
	unread int
	// onRelease is called with each hub that loses its organization.
	onRelease func(domain.HubID)
}

// keyAccess is a key and the end of what closes its Revoked.
type keyAccess struct {
	domain.KeyAccess
	revoke chan struct{}
}

// NewAccess makes an Access that Run fills. The store is where it is loaded from; nil loads all of
// it from the directory. Its metrics are registered with r, unless that is nil.
func NewAccess(store *Store, dir Directory, log *slog.Logger, r prometheus.Registerer) *Access {
	if log == nil {
		log = slog.Default()
	}
	a := &Access{
		store:  store,
		dir:    dir,
		log:    log.With("projection", "access"),
		loaded: make(chan struct{}),
	}
	a.forget()
	if r != nil {
		a.register(r)
	}
	return a
}

// forget makes it empty.
func (a *Access) forget() {
	a.keys, a.hubs, a.orgs, a.eventID = map[string]keyAccess{}, map[domain.HubID]domain.HubAccess{}, map[string]string{}, ""
	a.people, a.refused = newPeople(), refusedKeys{}
}

// Key gives a key that is in force, by its id. Its Revoked is closed when it is revoked.
func (a *Access) Key(id string) (domain.KeyAccess, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	key, ok := a.keys[id]
	return key.KeyAccess, ok
}

// KeysOf returns how many keys of an organization are in force.
func (a *Access) KeysOf(org string) int {
	a.mu.RLock()
	defer a.mu.RUnlock()
	n := 0
	for _, key := range a.keys {
		if key.OrgID == org {
			n++
		}
	}
	return n
}

// Hub gives a hub that an organization has added.
func (a *Access) Hub(id domain.HubID) (domain.HubAccess, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	hub, ok := a.hubs[id]
	return hub, ok
}

// OnRelease has fn called with each hub that is taken away from its organization from now on, after
// Hub knows it no more and before WaitFor returns. fn must not wait for anything.
func (a *Access) OnRelease(fn func(domain.HubID)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.onRelease = fn
}

// Applied gives the sequence of the directory's last event that it has.
func (a *Access) Applied() uint64 {
	at, _ := a.applied.position()
	return at
}

// WaitFor returns nil once it has the directory up to and including seq, or with ctx's error.
func (a *Access) WaitFor(ctx context.Context, seq uint64) error { return a.applied.wait(ctx, seq) }

// Refresh returns nil once it has everything that the directory held at the call.
func (a *Access) Refresh(ctx context.Context) error {
	head, err := a.dir.Head(ctx, a.Applied())
	if err != nil {
		return err
	}
	return a.WaitFor(ctx, head)
}

// Loaded is closed once it has everything that was in the directory when Run began. Until then keys
// and hubs may be missing.
func (a *Access) Loaded() <-chan struct{} { return a.loaded }

// Ready returns nil while it follows the directory, and ErrNotLoaded before it has caught up.
func (a *Access) Ready() error {
	select {
	case <-a.loaded:
	default:
		return ErrNotLoaded
	}
	return nil
}

// Unread counts the events that it could not read since it began, and passed over.
func (a *Access) Unread() int {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.unread
}

// Run loads the keys and hubs and follows the directory until ctx ends, and returns nil then. An
// event that it cannot read is passed over, so that what comes after it is in force; but if it is
// about an API key, it might be a revocation, and the key is refused until an operator skips the
// event or a program runs that can read it. An error is returned only when the broker's connection
// was closed for good.
func (a *Access) Run(ctx context.Context) error {
	a.load(ctx)
	for {
		err := a.follow(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, nats.ErrConnectionClosed):
			return fmt.Errorf("access: %w", err)
		case errors.Is(err, ErrOtherStream):
			a.log.Warn(
				"the read models are not of this directory; loading keys and hubs from the directory alone",
				"error", err,
			)
			a.restart()
		default:
			a.log.Warn("lost the directory; following again", "error", err)
			pause(ctx, firstRetry)
		}
	}
}

// load takes what the read models have. Without them everything comes from the directory, which
// only takes longer.
func (a *Access) load(ctx context.Context) {
	if a.store == nil {
		return
	}
	begun := time.Now()
	loading, cancel := context.WithTimeout(ctx, commitLimit)
	defer cancel()
	from, err := a.store.snapshot(loading)
	if err != nil {
		if ctx.Err() == nil {
			a.log.Warn(
				"cannot load keys and hubs from the read models; loading them from the directory",
				"error", err,
			)
		}
		return
	}
	a.mu.Lock()
	a.hubs = make(map[domain.HubID]domain.HubAccess, len(from.hubs))
	for _, key := range from.keys {
		a.putKey(
			key.ID, key.OrgID, key.Environment,
			column(key.Scopes, func(s string) domain.Scope { return domain.Scope(s) }),
			key.SecretHash,
		)
	}
	for _, hub := range from.hubs {
		epoch, err := domain.ParseEpochID(hub.Incarnation)
		if err != nil {
			a.log.Error("unreadable epoch in the read models", "hub_id", hub.ID, "error", err)
		}
		a.hubs[domain.HubID(hub.ID)] = domain.HubAccess{
			OrgID: a.org(hub.OrgID),
			Epoch: domain.Epoch{
				ID: epoch, After: uint64(hub.LogAfter),
				Former: domain.ParseFormerEpochs(hub.LogFormer),
			},
		}
	}
	for _, org := range from.orgs {
		a.people.orgs[org.ID] = org.Name
	}
	for _, m := range from.members {
		a.people.join(m.OrgID, m.ID, m.Email, domain.Role(m.Role))
	}
	a.eventID = from.eventID
	a.mu.Unlock()
	a.applied.advance(from.sequence)
	a.log.Info(
		"keys and hubs loaded from the read models", "keys", len(from.keys), "hubs", len(from.hubs),
		"sequence", from.sequence, "duration_ms", time.Since(begun).Milliseconds(),
	)
}

// restart begins again without what was loaded. That is found out with the first event, before
// Loaded; whatever was let in so early ends.
func (a *Access) restart() {
	a.mu.Lock()
	for _, key := range a.keys {
		close(key.revoke)
	}
	a.people.end()
	a.forget()
	a.mu.Unlock()
	_, changes := a.applied.position()
	a.applied.set(0, changes)
}
