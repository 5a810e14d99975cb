package portal

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/feed"
	"hubcloud/streams/feed/orgfeed"
	"hubcloud/streams/journal"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/views/viewstest"
)

const (
	hubA = domain.HubID("hub-aaaa-aaaa-aaaa")
	hubB = domain.HubID("hub-bbbb-bbbb-bbbb")
)

var day = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// testLive is a Live over a real feed of real hub logs. Fakes are:
//   - the read models, and the hubs and their epochs in memory: a test decides when each of them sees that a hub was
//     added, released or reset, because the real ones are behind each other at random;
//   - the devices: hubs must be slow, fail, or report invalid data;
//   - the viewer's membership and session, which are channels and a function here.
type testLive struct {
	ReadModels
	Devices
	t         testing.TB
	logs      *feed.Logs
	feed      *orgfeed.Feed
	live      *Portal
	clock     streamstest.Clock // of the feed
	ended     chan struct{}     // ends the viewer's membership
	signedOut chan struct{}     // ends the viewer's session

	mu      sync.Mutex
	hubs    map[domain.HubID]domain.Hub
	epochs  map[domain.HubID]domain.Epoch
	changed chan struct{} // closed at the next change of epochs
	last    map[domain.HubID]uint64
	// appending serializes append.
	appending sync.Mutex
	devices   []domain.Device
	labels    map[int64]domain.DeviceLabel
	errs      map[int64]error // the results of Get by device, and of List by 0
	gets      atomic.Int64    // calls of Get
	more      atomic.Int64    // calls of newHub
	// answers replaces the answers of Get of some hubs.
	answers map[domain.HubID]func() (domain.Device, error)
	// slow blocks Get, and with slowList also List, until it is closed. nil does not block.
	slow     chan struct{}
	slowList bool
	out      bool // the session is invalid, but signedOut is not closed
}

func newTestLive(t testing.TB, cfg Config) *testLive {
	t.Helper()
	r := &testLive{
		t: t, ended: make(chan struct{}), signedOut: make(chan struct{}),
		hubs: map[domain.HubID]domain.Hub{}, epochs: map[domain.HubID]domain.Epoch{},
		last: map[domain.HubID]uint64{}, errs: map[int64]error{}, changed: make(chan struct{}),
		answers: map[domain.HubID]func() (domain.Device, error){},
	}
	cfg.Retention = cmp.Or(cfg.Retention, time.Hour)
	r.add(hubA)
	r.add(hubB)
	conns := streamstest.Start(t)
	journals, _ := viewstest.Open(t, conns, cfg.Retention)
	var err error
	r.logs, err = feed.New(
		conns,
		feed.Config{
			Journal:   journals,
			Retention: cfg.Retention,
			Epoch:     r.epoch,
			Now:       r.clock.Now,
			Logger:    slog.New(slog.DiscardHandler),
		},
	)
	streamstest.Must(t, err)
	r.feed, err = orgfeed.New(orgfeed.Config{
		Logs: r.logs, Hubs: testHubs{r}, Journal: journals, Retention: cfg.Retention,
		Now: r.clock.Now,
	})
	streamstest.Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = r.logs.Run(ctx) })
	running.Go(func() { _ = r.feed.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		r.feed.Close()
		r.logs.Close()
	})
	cfg.ReadModels, cfg.Devices, cfg.Events = r, r, r.logs
	cfg.Feed, cfg.Hubs = testFeed{r.feed}, testHubs{r}
	cfg.DisconnectReason = func(domain.HubID) *string { return nil }
	cfg.History = sentCommands{}
	if cfg.Reported == nil {
		cfg.Reported = reported{}
	}
	cfg.Pace = cmp.Or(cfg.Pace, time.Millisecond)
	r.live = New(cfg)
	return r
}

// testFeed adapts orgfeed.Feed to live.Feed.
type testFeed struct{ *orgfeed.Feed }

func (f testFeed) Follow(
	ctx context.Context, org string, filter domain.EventFilter, after string,
) (EventReader, error) {
	return testReader(f.Feed.Follow(ctx, org, filter, after))
}

func (f testFeed) FollowSince(
	ctx context.Context, org string, filter domain.EventFilter, since time.Time,
) (EventReader, error) {
	return testReader(f.Feed.FollowSince(ctx, org, filter, since))
}

// testHubs is the hubs in memory: those with an epoch.
type testHubs struct{ r *testLive }

func (h testHubs) Hub(hub domain.HubID) (domain.HubAccess, bool) {
	h.r.mu.Lock()
	defer h.r.mu.Unlock()
	epoch, ok := h.r.epochs[hub]
	return domain.HubAccess{OrgID: "org", SiteID: h.r.hubs[hub].SiteID, Epoch: epoch}, ok
}

func (h testHubs) HubsOf(string) []domain.HubID {
	h.r.mu.Lock()
	defer h.r.mu.Unlock()
	return slices.Collect(maps.Keys(h.r.epochs))
}

func (h testHubs) Changed(string) <-chan struct{} {
	h.r.mu.Lock()
	defer h.r.mu.Unlock()
	return h.r.changed
}

func (testHubs) Refresh(context.Context) error { return nil }

func (r *testLive) epoch(hub domain.HubID) (domain.Epoch, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	epoch, ok := r.epochs[hub]
	return epoch, ok
}

// add adds an online hub to the organization.
func (r *testLive) add(hub domain.HubID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hubs[hub] = domain.Hub{ID: hub, SiteID: "site", Status: domain.HubOnline, Since: day}
	r.setEpoch(hub, domain.Epoch{ID: domain.NewEpochID(uint32(len(r.hubs)))})
}

// newHub adds another online hub, so that the cases of a test share the broker.
func (r *testLive) newHub() domain.HubID {
	hub := domain.HubID(fmt.Sprintf("hub-cccc-cccc-%04d", r.more.Add(1)))
	r.add(hub)
	return hub
}

// setEpoch sets the epoch of a hub, and the hub of the organization. The caller must hold r.mu.
func (r *testLive) setEpoch(hub domain.HubID, epoch domain.Epoch) {
	r.epochs[hub] = epoch
	close(r.changed)
	r.changed = make(chan struct{})
}

// release removes a hub from the organization, but not from the read models, which are behind.
func (r *testLive) release(hub domain.HubID) {
	r.mu.Lock()
	delete(r.epochs, hub)
	close(r.changed)
	r.changed = make(chan struct{})
	r.mu.Unlock()
	r.logs.Released(hub)
}

// reset begins a new epoch of a hub's log.
func (r *testLive) reset(hub domain.HubID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setEpoch(hub, domain.Epoch{ID: domain.NewEpochID(0xff), After: r.last[hub]})
}

// change changes a hub in the read models.
func (r *testLive) change(hub domain.HubID, update func(*domain.Hub)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := r.hubs[hub]
	update(&changed)
	if r.hubs[hub].SiteID != changed.SiteID {
		r.setEpoch(hub, r.epochs[hub]) // the hub is moved in memory too
	}
	r.hubs[hub] = changed
}

// append appends an event to a hub's log for each data.
func (r *testLive) append(hub domain.HubID, eventType string, device int64, data ...string) {
	r.t.Helper()
	epoch, _ := r.epoch(hub)
	r.appending.Lock()
	defer r.appending.Unlock()
	var records []journal.Record
	for i, d := range data {
		n := uint64(i) + r.last[hub] + 1
		records = append(records, journal.Record{
			Kind: journal.KindHubEvent, EpochID: epoch.ID, OrgID: "org", OwnLog: "a", Through: n,
			Payload: fmt.Appendf(
				nil,
				`{"type":%q,"hub_id":%q,"device_id":%d,"time":%q,"clock_trusted":true,"data":%s}`,
				eventType, hub, device, domain.FormatTime(time.Now()), d,
			),
		})
	}
	last, err := r.logs.Append(r.t.Context(), hub, r.last[hub], records)
	streamstest.Must(r.t, err)
	r.last[hub] = last
}

func (r *testLive) Hubs(
	_ context.Context, _ domain.Reach, site *string, limit int, after string,
) (domain.Page[domain.Hub], error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	page := domain.Page[domain.Hub]{Data: []domain.Hub{}}
	for _, id := range slices.Sorted(maps.Keys(r.hubs)) {
		if string(id) <= after || site != nil && r.hubs[id].SiteID != *site {
			continue
		}
		if len(page.Data) == limit {
			page.HasMore = true
			break
		}
		page.Data = append(page.Data, r.hubs[id])
	}
	return page, nil
}

func (r *testLive) Hub(_ context.Context, _ string, id domain.HubID) (domain.Hub, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	hub, ok := r.hubs[id]
	if !ok {
		return hub, domain.ErrHubNotFound()
	}
	return hub, nil
}

func (r *testLive) DeviceLabels(
	context.Context, string, domain.HubID,
) (map[int64]domain.DeviceLabel, error) {
	return r.labels, nil
}

// wait blocks while the hub is slow.
func (r *testLive) wait(ctx context.Context, slow bool) error {
	if !slow || r.slow == nil {
		return nil
	}
	select {
	case <-r.slow:
		return nil
	case <-ctx.Done():
		return domain.Errorf(domain.CodeHubTimeout, "no answer")
	}
}

func (r *testLive) List(ctx context.Context, _ domain.HubID) ([]domain.Device, error) {
	if err := r.wait(ctx, r.slowList); err != nil {
		return nil, err
	}
	return r.devices, r.errs[0]
}

// answer replaces the answers of Get of a hub.
func (r *testLive) answer(hub domain.HubID, get func() (domain.Device, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers[hub] = get
}

func (r *testLive) Get(ctx context.Context, hub domain.HubID, id int64) (domain.Device, error) {
	r.gets.Add(1)
	if err := r.wait(ctx, true); err != nil {
		return domain.Device{}, err
	}
	r.mu.Lock()
	get := r.answers[hub]
	r.mu.Unlock()
	if get != nil {
		return get()
	}
	i := slices.IndexFunc(r.devices, func(d domain.Device) bool { return d.ID == id })
	if i < 0 || r.errs[id] != nil {
		return domain.Device{}, cmp.Or(
			r.errs[id], error(domain.Errorf(domain.CodeNotFound, "no such device")),
		)
	}
	return r.devices[i], nil
}

// testReader returns a reader as an interface, which is nil after an error.
func testReader(reader *orgfeed.Reader, err error) (EventReader, error) {
	if err != nil {
		return nil, err
	}
	return reader, nil
}
