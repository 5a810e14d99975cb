package live_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/portal/live"
	"hubcloud/streams/hublog"
	"hubcloud/streams/journal"
	"hubcloud/streams/logwriter/logwritertest"
	"hubcloud/streams/streamstest"
)

const (
	hubA = domain.HubID("hub-aaaa-aaaa-aaaa")
	hubB = domain.HubID("hub-bbbb-bbbb-bbbb")
)

var day = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// testLive is a Live over real hub logs. Fakes are:
//   - the read models and the epochs of hubs: a test decides when each of them sees that a hub was
//     added, released or reset, because the real ones are behind each other at random;
//   - the devices: hubs must be slow, fail, or report invalid data;
//   - the viewer's membership and session, which are channels and a function here.
type testLive struct {
	t         testing.TB
	logs      *hublog.Logs
	live      *live.Live
	ended     chan struct{} // ends the viewer's membership
	signedOut chan struct{} // ends the viewer's session

	mu      sync.Mutex
	hubs    map[domain.HubID]domain.Hub
	epochs  map[domain.HubID]domain.Epoch
	last    map[domain.HubID]uint64
	devices []domain.Device
	labels  map[int64]domain.DeviceLabel
	errs    map[int64]error // the results of Get by device, and of List by 0
	gets    atomic.Int64    // calls of Get
	// slow blocks Get, and with slowList also List, until it is closed. nil does not block.
	slow     chan struct{}
	slowList bool
	out      bool // the session is invalid, but signedOut is not closed
}

func newTestLive(t testing.TB, cfg live.Config) *testLive {
	t.Helper()
	r := &testLive{
		t: t, ended: make(chan struct{}), signedOut: make(chan struct{}),
		hubs: map[domain.HubID]domain.Hub{}, epochs: map[domain.HubID]domain.Epoch{},
		last: map[domain.HubID]uint64{}, errs: map[int64]error{},
	}
	r.add(hubA)
	r.add(hubB)
	conns := streamstest.Start(t)
	journals, _ := logwritertest.Open(t, conns, time.Hour)
	var err error
	r.logs, err = hublog.New(
		conns,
		hublog.Config{
			Journal:   journals,
			Retention: time.Hour,
			Epoch:     r.epoch,
			Logger:    slog.New(slog.DiscardHandler),
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- r.logs.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ran
		r.logs.Close()
	})
	cfg.ReadModels, cfg.Devices, cfg.Events = r, r, groups{r.logs}
	cfg.DisconnectReason = func(domain.HubID) *string { return nil }
	cfg.Pace = cmp.Or(cfg.Pace, time.Millisecond)
	r.live = live.New(cfg)
	return r
}

// groups adapts hublog.Logs to live.Events.
type groups struct{ *hublog.Logs }

func (g groups) Group() live.EventGroup { return g.NewGroup() }

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
	r.epochs[hub] = domain.Epoch{ID: domain.NewEpochID(uint32(len(r.hubs)))}
}

// release removes a hub from the organization, but not from the read models, which are behind.
func (r *testLive) release(hub domain.HubID) {
	r.mu.Lock()
	delete(r.epochs, hub)
	r.mu.Unlock()
	r.logs.Released(hub)
}

// reset begins a new epoch of a hub's log.
func (r *testLive) reset(hub domain.HubID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.epochs[hub] = domain.Epoch{ID: domain.NewEpochID(0xff), After: r.last[hub]}
}

// change changes a hub in the read models.
func (r *testLive) change(hub domain.HubID, update func(*domain.Hub)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := r.hubs[hub]
	update(&changed)
	r.hubs[hub] = changed
}

// append appends an event to a hub's log for each data.
func (r *testLive) append(hub domain.HubID, eventType string, device int64, data ...string) {
	r.t.Helper()
	epoch, _ := r.epoch(hub)
	var records []journal.Record
	for i, d := range data {
		n := uint64(i) + r.last[hub] + 1
		records = append(
			records,
			journal.Record{Kind: journal.KindHubEvent, EpochID: epoch.ID, OwnLog: "a", Through: n, Payload: fmt.Appendf(
				nil,
				`{"type":%q,"hub_id":%q,"device_id":%d,"time":%q,"clock_trusted":true,"data":%s}`,
				eventType, hub, device, domain.FormatTime(time.Now()), d,
			)},
		)
	}
	last, err := r.logs.Append(r.t.Context(), hub, r.last[hub], records)
	if err != nil {
		r.t.Fatal(err)
	}
	r.last[hub] = last
}

func (r *testLive) Hubs(
	_ context.Context, _ string, _ *string, limit int, after string,
) (domain.Page[domain.Hub], error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	page := domain.Page[domain.Hub]{Data: []domain.Hub{}}
	for _, id := range slices.Sorted(maps.Keys(r.hubs)) {
		if string(id) <= after {
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

func (r *testLive) Get(ctx context.Context, _ domain.HubID, id int64) (domain.Device, error) {
	r.gets.Add(1)
	if err := r.wait(ctx, true); err != nil {
		return domain.Device{}, err
	}
	i := slices.IndexFunc(r.devices, func(d domain.Device) bool { return d.ID == id })
	if i < 0 || r.errs[id] != nil {
		return domain.Device{}, cmp.Or(
			r.errs[id], error(domain.Errorf(domain.CodeNotFound, "no such device")),
		)
	}
	return r.devices[i], nil
}

// page reads a stream as a page of the portal does.
type page struct {
	t      testing.TB
	lines  *bufio.Scanner
	cancel context.CancelFunc
	// positions are the cursors to reconnect with, nil if the stream was rejected.
	positions map[domain.HubID]string
}

// block is one event of a stream.
type block struct {
	Type string
	Data json.RawMessage
}

// open opens a stream, which ends with the test.
func (r *testLive) open(want live.StreamRequest) *page {
	r.t.Helper()
	server := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			viewer := live.Viewer{
				OrgID:     "org",
				MemberID:  "member",
				Ended:     r.ended,
				SignedOut: r.signedOut,
				SignedIn: func(context.Context) bool {
					r.mu.Lock()
					defer r.mu.Unlock()
					return !r.out
				},
			}
			if err := r.live.Stream(w, request, viewer, want); err != nil {
				http.Error(w, err.Error(), http.StatusTooManyRequests)
			}
		}),
	)
	ctx, cancel := context.WithCancel(context.Background())
	request, err := http.NewRequestWithContext(ctx, "POST", server.URL, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	response, err := server.Client().Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	p := &page{
		t:         r.t,
		lines:     bufio.NewScanner(response.Body),
		cancel:    cancel,
		positions: map[domain.HubID]string{},
	}
	p.lines.Buffer(nil, 1<<20)
	r.t.Cleanup(func() {
		cancel()
		response.Body.Close()
		server.Close()
	})
	if response.StatusCode != http.StatusOK {
		p.positions = nil
	}
	return p
}

// next returns the next event, and false at the stream's end.
func (p *page) next() (block, bool) {
	var b block
	for p.lines.Scan() {
		line := p.lines.Text()
		if text, ok := strings.CutPrefix(line, "event: "); ok {
			b.Type = text
		}
		if text, ok := strings.CutPrefix(line, "data: "); ok {
			b.Data = json.RawMessage(text)
		}
		if line == "" && b.Data != nil {
			p.updatePositions(b)
			return b, true
		}
	}
	return b, false
}

// updatePositions applies an event to the page's positions.
func (p *page) updatePositions(b block) {
	p.t.Helper()
	var err error
	if b.Type == "hub.portal_positions" {
		err = json.Unmarshal(b.Data, &p.positions)
	} else if !strings.HasPrefix(b.Type, "hub.portal_") {
		var event live.Event
		err = json.Unmarshal(b.Data, &event)
		p.positions[event.HubID] = event.Cursor
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// await skips events up to one of a type, and unmarshals its data.
func (p *page) await(eventType string, into any) {
	p.t.Helper()
	for {
		b, ok := p.next()
		if !ok {
			p.t.Fatalf("stream ended, want %s", eventType)
		}
		if b.Type != eventType {
			continue
		}
		if err := json.Unmarshal(b.Data, into); err != nil {
			p.t.Fatal(err)
		}
		return
	}
}

// values reads events until each hub has reported its last value. It returns all values by hub.
func (p *page) values(last map[domain.HubID]int) map[domain.HubID][]int {
	p.t.Helper()
	got := map[domain.HubID][]int{}
	for missing := len(last); missing > 0; {
		var event live.Event
		p.await("channel.observed", &event)
		var data struct{ Value int }
		if err := json.Unmarshal(event.Data, &data); err != nil {
			p.t.Fatal(err)
		}
		got[event.HubID] = append(got[event.HubID], data.Value)
		if data.Value == last[event.HubID] {
			missing--
		}
	}
	return got
}

// levels returns the data of channel.observed events with the values from, from+1, … to.
func levels(from, to int) []string {
	var all []string
	for n := from; n <= to; n++ {
		all = append(all, fmt.Sprintf(`{"key":"level","endpoint":0,"value":%d}`, n))
	}
	return all
}

// sequence returns from, from+1, … to.
func sequence(from, to int) []int {
	all := []int{}
	for n := from; n <= to; n++ {
		all = append(all, n)
	}
	return all
}

// states is the data of hub.portal_states.
type states struct {
	Whole bool
	Hubs  []live.HubState
}
