package orgfeed

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/streams/feed"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/shares"
)

// Hubs has the hubs of organizations in memory.
type Hubs interface {
	// Hub returns the hub with that id, and false if no organization has it.
	Hub(id domain.HubID) (domain.HubAccess, bool)
	// HubsOf returns the hubs of an organization, in no order.
	HubsOf(org string) []domain.HubID
	// Refresh returns once Hub and HubsOf have everything that the directory held at the call.
	Refresh(ctx context.Context) error
}

// Journal is what the feed needs of the journals (journal.Journal).
type Journal interface {
	// Groups returns the number of groups.
	Groups() int
	// GroupOfHub returns the group of a hub.
	GroupOfHub(hub domain.HubID) int
	// SyncGroup returns once this process has everything that was stored in the logs of the group
	// before the call.
	SyncGroup(ctx context.Context, group int) error
}

// ringIdle is how long a ring is kept after its last reader.
const ringIdle = 30 * time.Second

// Config configures a Feed. Logs, Hubs, Journal and Retention are required.
type Config struct {
	Logs    *feed.Logs `check:"set"`
	Hubs    Hubs       `check:"set"`
	Journal Journal    `check:"set"`
	// Retention is how long events are kept and how long a position stays valid.
	Retention time.Duration
	// RingEvents bounds the newest events of one organization in memory. Defaults to 10,000.
	RingEvents int
	// Shares reports the merges of organizations; nil reports nothing.
	Shares *shares.Registry
	// Now is the clock, which must agree with the broker's. Defaults to time.Now.
	Now func() time.Time
	// Logger defaults to slog.Default.
	Logger *slog.Logger
}

// WithDefaults returns a copy with defaults for what is not set.
func (c Config) WithDefaults() Config {
	c.RingEvents = cmp.Or(c.RingEvents, 10_000)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Validate returns an error that names the first invalid field.
func (c Config) Validate() error {
	if c.Retention < feed.MinRetention {
		return fmt.Errorf(
			"organization feeds: Retention is %v: must be at least %v", c.Retention,
			feed.MinRetention,
		)
	}
	return domain.CheckFields("organization feeds", c)
}

// Feed has the feeds of all organizations. All methods may be called at any time, from any
// goroutine.
type Feed struct {
	cfg    Config
	groups int
	// mergeSlots are held by the readers that hold the events of a merge.
	mergeSlots *shares.Pool
	merges     keptMerges
	// former has the formerLog of hubs that were reset, by their IDs, as far as readers of a ring
	// have needed it.
	former sync.Map
	// refreshed is when the last refresh of Hubs for an unknown hub began.
	refreshed atomic.Pointer[time.Time]

	mu    sync.RWMutex
	rings map[string]*ring
	// catchUps are shared by readers behind the rings, by organization.
	catchUps map[string][]*catchUp
	closed   bool
	// counters has the counters of organizations with rings, and the kept ones.
	counters map[string]*counter
}

// mergeSlots is how many readers hold the events of a merge at once. An organization's take half of
// the processors, since they read and filter as fast as they can, and 2 at least.
const mergeSlots = 32

// New returns a Feed over the logs, of which it becomes the observer. The journals must be open.
func New(cfg Config) (*Feed, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	f := &Feed{
		cfg: cfg, groups: cfg.Journal.Groups(), rings: map[string]*ring{},
		catchUps: map[string][]*catchUp{}, mergeSlots: shares.NewPool(
			cfg.Shares, shares.PoolConfig{
				Name: "merges_of_events", What: "reads of stored events wait", Limits: shares.Limits{
					Total: mergeSlots, PerOrg: int64(max(2, runtime.GOMAXPROCS(0)/2)),
					Waiting: math.MaxInt,
				},
			},
		),
		merges: newKeptMerges(cfg.Shares), counters: map[string]*counter{},
	}
	cfg.Logs.Observe(f)
	return f, nil
}

// Close ends every reader with domain.ErrEventsClosed.
func (f *Feed) Close() {
	f.mu.Lock()
	all := f.rings
	f.rings, f.closed = map[string]*ring{}, true
	f.mu.Unlock()
	for _, r := range all {
		r.end(domain.ErrEventsClosed)
	}
	f.merges.drop(time.Now().Add(time.Hour))
	f.dropCatchUps(time.Now().Add(time.Hour))
}

// withMergeSlot calls do, which reads the events of a merge for an organization. It returns
// rate_limited if ctx ends while the organization's other reads go on.
func (f *Feed) withMergeSlot(ctx context.Context, org string, do func() error) error {
	release, err := f.mergeSlots.Wait(ctx, shares.Spender{Org: org})
	if err != nil {
		return err
	}
	defer release()
	return do()
}

// Wants implements feed.Observer: it reports whether the record's organization has a ring. Events
// that no ring gets are counted here.
func (f *Feed) Wants(r *journal.Record) bool { return f.ringFor(r) != nil }

// ringFor returns the ring that an event belongs to. If there is none, it returns nil and counts
// the event.
func (f *Feed) ringFor(r *journal.Record) *ring {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if len(f.counters) == 0 {
		return nil
	}
	org := r.OrgID
	if org == "" {
		access, ok := f.cfg.Hubs.Hub(r.Hub)
		if !ok {
			return nil
		}
		org = access.OrgID
	}
	ring := f.rings[org]
	if c := f.counters[org]; ring == nil && c != nil {
		c.events.Add(1)
	}
	return ring
}

// Received implements feed.Observer.
func (f *Feed) Received(group int, events []feed.ReceivedEvent) {
	var changed []*ring
	for i := range events {
		r := f.ringFor(events[i].Record)
		if r == nil {
			continue
		}
		if r.push(group, &events[i]) && (len(changed) == 0 || changed[len(changed)-1] != r) {
			changed = append(changed, r)
		}
	}
	for _, r := range changed {
		r.wake()
	}
}

// acquire returns the ring of an organization once it is open. The caller counts as a reader until
// release.
func (f *Feed) acquire(ctx context.Context, org string) (*ring, error) {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil, domain.ErrEventsClosed
	}
	r := f.rings[org]
	opens := r == nil
	if opens {
		r = newRing(f, org)
		f.rings[org] = r
	}
	r.Attach()
	f.mu.Unlock()
	if opens {
		// The ring receives events from now on; what was stored before is up to its start.
		r.open(context.WithoutCancel(ctx))
	}
	select {
	case <-r.opened:
	case <-ctx.Done():
		f.release(r)
		return nil, ctx.Err()
	}
	if r.openErr != nil {
		f.release(r)
		return nil, r.openErr
	}
	return r, nil
}

func (f *Feed) release(r *ring) { r.Detach() }

// remove removes a ring, and ends its readers with err.
func (f *Feed) remove(r *ring, err error) {
	f.mu.Lock()
	current := f.rings[r.org] == r
	if current {
		f.deleteLocked(r)
	}
	f.mu.Unlock()
	if current {
		r.end(err)
	}
}

// deleteLocked deletes a ring, and its counter unless that is kept. The caller must hold f.mu.
func (f *Feed) deleteLocked(r *ring) {
	delete(f.rings, r.org)
	if !r.feedCounter.kept {
		delete(f.counters, r.org)
	}
}

// removeIdle removes a ring without readers since before. Readers attach under f.mu, so none can
// attach in between.
func (f *Feed) removeIdle(r *ring, before time.Time) {
	f.mu.Lock()
	idle := f.rings[r.org] == r && r.IdleSince(before)
	if idle {
		f.deleteLocked(r)
	}
	f.mu.Unlock()
	if idle {
		r.end(domain.ErrEventsClosed)
	}
}

// sync returns once this process has everything that was stored before the call, and the time of
// the call in milliseconds since 1970.
func (f *Feed) sync(ctx context.Context) (at int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Patience)
	defer cancel()
	at = f.cfg.Now().UnixMilli()
	groups, ctx := errgroup.WithContext(ctx)
	for g := range f.groups {
		groups.Go(func() error { return f.cfg.Journal.SyncGroup(ctx, g) })
	}
	if err := groups.Wait(); err != nil {
		return 0, unavailable(fmt.Errorf("organization feed: %w", err))
	}
	return at, nil
}

// ends returns for each group when the last record of the organization's hubs was stored.
func (f *Feed) ends(org string) []int64 {
	times := make([]int64, f.groups)
	for _, hub := range f.cfg.Hubs.HubsOf(org) {
		g := f.cfg.Journal.GroupOfHub(hub)
		times[g] = max(times[g], f.cfg.Logs.LastStored(hub))
	}
	return times
}

// expired reports whether a position is older than the retention.
func (f *Feed) expired(p Position) bool {
	return f.cfg.Now().Sub(p.completeAt()) > f.cfg.Retention
}

// unavailable returns a temporary error of the broker as a domain.Unavailable, others unchanged.
func unavailable(err error) error {
	return jsapi.Unavailable(
		err, "an event log has no leader at the moment: retry from the same position later",
	)
}

const (
	// maxSweep is the longest pause between two sweeps.
	maxSweep = time.Second
	// maxUnconfirmed is how long a feed with readers goes without a sync.
	maxUnconfirmed = 4 * time.Second
)

// Run closes rings without readers and confirms that those with readers are complete, until ctx
// ends. It returns nil then.
func (f *Feed) Run(ctx context.Context) error {
	// With a short retention, as in tests, positions must be renewed more often.
	unconfirmed := min(maxUnconfirmed, max(f.cfg.Retention/8, 20*time.Millisecond))
	ticker := time.NewTicker(min(maxSweep, unconfirmed/2))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-ticker.C:
			f.sweep(ctx, now, unconfirmed)
		}
	}
}

func (f *Feed) sweep(ctx context.Context, now time.Time, unconfirmed time.Duration) {
	f.mu.RLock()
	all := slices.Collect(maps.Values(f.rings))
	for _, catchUps := range f.catchUps {
		for _, p := range catchUps {
			p.TrimToBudget()
		}
	}
	f.mu.RUnlock()
	f.merges.drop(now.Add(-keptMergeAge))
	f.dropCatchUps(now.Add(-catchUpIdle))
	due := false
	for _, r := range all {
		if idle := now.Add(-ringIdle); r.IdleSince(idle) {
			f.removeIdle(r, idle)
			continue
		}
		r.TrimToBudget()
		due = due || f.cfg.Now().Sub(time.UnixMilli(r.confirmedAt())) > unconfirmed/2
	}
	if !due {
		return
	}
	at, err := f.sync(ctx)
	if err != nil {
		return // positions are renewed once the journals answer
	}
	for _, r := range all {
		r.confirm(at)
	}
}
