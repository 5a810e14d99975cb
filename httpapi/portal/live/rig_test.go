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
	"hubcloud/streams/streamstest"
)

const (
	hubA = domain.HubID("hub-aaaa-aaaa-aaaa")
	hubB = domain.HubID("hub-bbbb-bbbb-bbbb")
)

var day = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// rig is a Live over real hub logs; the read models and the hubs are in memory.
type rig struct {
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
	refused map[int64]error // what asking for a device answers
	asked   atomic.Int64    // how many devices were asked for
	// slow holds up what is asked for a device, and with slowList for all of them, until it is
	// closed; nil holds up nothing.
	slow     chan struct{}
	slowList bool
	out      bool // the viewer has signed out
}

func newRig(t testing.TB, cfg live.Config) *rig {
	t.Helper()
	r := &rig{
		t: t, ended: make(chan struct{}), signedOut: make(chan struct{}),
		hubs: map[domain.HubID]domain.Hub{}, epochs: map[domain.HubID]domain.Epoch{},
		last: map[domain.HubID]uint64{}, refused: map[int64]error{},
	}
	r.add(hubA)
	r.add(hubB)
	var err error
	r.logs, err = hublog.New(
		streamstest.Start(t),
		hublog.Config{
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

// groups is hublog.Logs as pages take it.
type groups struct{ *hublog.Logs }

func (g groups) Group() live.EventGroup { return g.NewGroup() }

func (r *rig) epoch(hub domain.HubID) (domain.Epoch, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	epoch, ok := r.epochs[hub]
	return epoch, ok
}

// add gives the organization a hub that is online.
func (r *rig) add(hub domain.HubID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hubs[hub] = domain.Hub{ID: hub, SiteID: "site", Status: domain.HubOnline, Since: day}
	r.epochs[hub] = domain.Epoch{ID: domain.NewEpochID(uint32(len(r.hubs)))}
}

// release takes a hub from the organization, as everything but the read models has it.
func (r *rig) release(hub domain.HubID) {
	r.mu.Lock()
	delete(r.epochs, hub)
	r.mu.Unlock()
	r.logs.Released(hub)
}

func (r *rig) change(hub domain.HubID, how func(*domain.Hub)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := r.hubs[hub]
	how(&changed)
	r.hubs[hub] = changed
}

// append stores events in a hub's log, each of that type with its data.
func (r *rig) append(hub domain.HubID, eventType string, device int64, data ...string) {
	r.t.Helper()
	epoch, _ := r.epoch(hub)
	var records []hublog.Record
	for i, d := range data {
		n := uint64(i) + r.last[hub] + 1
		records = append(
			records,
			hublog.Record{EpochID: epoch.ID, OwnLog: "a", Through: n, Payload: fmt.Appendf(
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

func (r *rig) Hubs(
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

func (r *rig) Hub(_ context.Context, _ string, id domain.HubID) (domain.Hub, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	hub, ok := r.hubs[id]
	if !ok {
		return hub, domain.ErrHubNotFound()
	}
	return hub, nil
}

func (r *rig) DeviceLabels(
	context.Context, string, domain.HubID,
) (map[int64]domain.DeviceLabel, error) {
	return r.labels, nil
}

// wait is what a hub that takes its time does.
func (r *rig) wait(ctx context.Context, slow bool) error {
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

func (r *rig) List(ctx context.Context, _ domain.HubID) ([]domain.Device, error) {
	if err := r.wait(ctx, r.slowList); err != nil {
		return nil, err
	}
	return r.devices, r.refused[0]
}

func (r *rig) Get(ctx context.Context, _ domain.HubID, id int64) (domain.Device, error) {
	r.asked.Add(1)
	if err := r.wait(ctx, true); err != nil {
		return domain.Device{}, err
	}
	i := slices.IndexFunc(r.devices, func(d domain.Device) bool { return d.ID == id })
	if i < 0 || r.refused[id] != nil {
		return domain.Device{}, cmp.Or(
			r.refused[id], error(domain.Errorf(domain.CodeNotFound, "no such device")),
		)
	}
	return r.devices[i], nil
}

// page is an open stream as a page reads it.
type page struct {
	t      testing.TB
	lines  *bufio.Scanner
	cancel context.CancelFunc
	// positions are what the page keeps to come back with.
	positions map[domain.HubID]string
}

// block is one event of a stream.
type block struct {
	Type string
	Data json.RawMessage
}

// open begins a stream. It ends with the test.
func (r *rig) open(want live.StreamRequest) *page {
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

// next gives the next event; false at the stream's end.
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
			p.keep(b)
			return b, true
		}
	}
	return b, false
}

// keep moves the page's positions on.
func (p *page) keep(b block) {
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

// await reads on to an event of that type, and gives its data.
func (p *page) await(eventType string, into any) {
	p.t.Helper()
	for {
		b, ok := p.next()
		if !ok {
			p.t.Fatalf("the stream ended without %s", eventType)
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

// values reads on until each hub has reported its last value, and gives what each reported.
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

// levels are the data of reports from a value to another.
func levels(from, to int) []string {
	var all []string
	for n := from; n <= to; n++ {
		all = append(all, fmt.Sprintf(`{"key":"level","endpoint":0,"value":%d}`, n))
	}
	return all
}

// upTo gives from, from+1, … up to to.
func upTo(from, to int) []int {
	all := []int{}
	for n := from; n <= to; n++ {
		all = append(all, n)
	}
	return all
}

type states struct {
	Whole bool
	Hubs  []live.HubState
}
