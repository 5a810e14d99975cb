package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/go-chi/chi/v5"

	"hubcloud/domain"
	page "hubcloud/httpapi/portal"
	"hubcloud/test/harness"
)

const (
	// The page shows loadHubs hubs and receives loadRate events a second, for loadTime or the
	// duration in the environment variable loadTimeVariable.
	loadHubs         = 500
	loadRate         = 200
	loadTime         = 20 * time.Second
	loadTimeVariable = "HUBCLOUD_TEST_LOAD_TIME"
	// loadSettled is the time until the page holds everything that it keeps: 500 events and the
	// devices' names. Growth counts from then on.
	loadSettled = 5 * time.Second
	// maxShare is the share of a core that the page's main thread may use, and maxShareBusy where other
	// programs were running before, which take its caches.
	maxShare, maxShareBusy = 0.05, 0.10
	// A browser loads at most firstLoad bytes for the page, and laterLoad once it has the files.
	firstLoad, laterLoad = 150 << 10, 30 << 10
	// maxGrowth, in bytes, and maxNewNodes bound the growth of the page's memory and document.
	maxGrowth   = 2 << 20
	maxNewNodes = 500
	// maxUpdates is how many times a second the list of events may change.
	maxUpdates = 1.2
)

// busyOrg serves the portal for an organization whose many hubs report events. Only the portal and
// the browser are real, since the test measures the page.
type busyOrg struct {
	quiet bool // no hub reports anything
	page.SignIn
	page.ReadModels
	page.Directory
	page.Devices
}

func busyHub(i int) domain.HubID { return domain.HubID(fmt.Sprintf("hub-aaaa-bbbb-%04d", i)) }

func (busyOrg) Session(context.Context, string, time.Time) (domain.PortalSession, error) {
	return domain.PortalSession{
		AccountID: "account",
		Email:     "ann@example.org",
		FormToken: "token",
	}, nil
}

func (busyOrg) Ended(string) (<-chan struct{}, func()) { return nil, func() {} }

func (busyOrg) Memberships(string) []domain.MemberAccess { return nil }

func (busyOrg) Membership(org, _ string) (domain.MemberAccess, bool) {
	return domain.MemberAccess{
		OrgID:    org,
		OrgName:  "Busy",
		MemberID: "member",
		Role:     domain.RoleOwner,
	}, true
}

func (busyOrg) Sites(context.Context, domain.Reach, int, string) (domain.Page[domain.Site], error) {
	sites := domain.Page[domain.Site]{}
	for i := range 20 {
		sites.Data = append(
			sites.Data, domain.Site{ID: fmt.Sprint("site-", i), Name: fmt.Sprint("Site ", i)},
		)
	}
	return sites, nil
}

func (busyOrg) Hubs(
	context.Context, domain.Reach, *string, int, string,
) (domain.Page[domain.Hub], error) {
	hubs := domain.Page[domain.Hub]{}
	for i := range loadHubs {
		name := fmt.Sprint("Hub ", i)
		hubs.Data = append(hubs.Data, domain.Hub{
			ID: busyHub(
				i,
			), Name: &name, SiteID: fmt.Sprint("site-", i%20), Status: domain.HubOnline,
			Since: time.Unix(1_760_000_000, 0).UTC(),
		})
	}
	return hubs, nil
}

func (busyOrg) Hub(context.Context, string, domain.HubID) (domain.Hub, error) {
	return domain.Hub{}, domain.ErrHubNotFound()
}

func (busyOrg) DeviceLabels(
	context.Context, string, domain.HubID,
) (map[int64]domain.DeviceLabel, error) {
	return nil, nil
}

// List returns the same devices for each hub.
func (busyOrg) List(context.Context, domain.HubID) ([]domain.Device, error) {
	var devices []domain.Device
	for id := range int64(18) {
		devices = append(devices, domain.Device{ID: id, Name: fmt.Sprint("Meter ", id)})
	}
	return devices, nil
}

// Hub returns the organization's access for every hub.
func (busyOrgOwners) Hub(domain.HubID) (domain.HubAccess, bool) {
	return domain.HubAccess{OrgID: "org"}, true
}

type busyOrgOwners struct{}

// busyOrgHubs has no change of the hubs.
type busyOrgHubs struct{ busyOrgOwners }

func (busyOrgHubs) HubsOf(string) []domain.HubID   { return make([]domain.HubID, loadHubs) }
func (busyOrgHubs) Changed(string) <-chan struct{} { return nil }

func (busyOrg) Page(context.Context, domain.HubID, string, int) (domain.EventPage, error) {
	return domain.EventPage{}, nil
}

func (busyOrg) Org(_ context.Context, org string) (domain.OrgState, error) {
	return domain.OrgState{ID: org}, nil
}

// StatesNeedingAttention returns a low battery at every tenth hub.
func (busyOrg) FindDevices(
	context.Context, string, string, []string, int,
) ([]domain.FoundDevice, error) {
	return nil, nil
}

func (busyOrg) StatesNeedingAttention(
	context.Context, string, string, domain.HubID,
) (states []domain.ReportedState, err error) {
	at := time.Unix(1_760_000_000, 0).UTC()
	for i := 0; i < loadHubs; i += 10 {
		states = append(states, domain.ReportedState{
			HubID: busyHub(i), DeviceID: 1, ChangedAt: &at,
			Channel: domain.Channel{Key: "battery", Value: []byte("7"), Available: true},
		})
	}
	return states, nil
}

func (busyOrg) States(
	context.Context, domain.Reach, domain.StateFilter, int, domain.StatePosition,
) (domain.StatesPage, error) {
	return domain.StatesPage{}, nil
}

func (busyOrg) HubFaults(context.Context, domain.HubID) ([]page.HubFault, error) {
	return nil, nil
}

func (busyOrg) SilentHubs(context.Context) (map[domain.HubID]time.Time, error) {
	return nil, nil
}

func (busyOrg) At(context.Context, domain.HubID, time.Time) (string, error) { return "", nil }

func (busyOrg) EndCursor(context.Context, domain.HubID) (string, error) { return "", nil }

func (c busyOrg) Follow(
	context.Context, string, domain.EventFilter, string,
) (page.EventReader, error) {
	return &busyFeed{quiet: c.quiet, begun: time.Now()}, nil
}

func (c busyOrg) FollowSince(
	ctx context.Context, org string, filter domain.EventFilter, _ time.Time,
) (page.EventReader, error) {
	return c.Follow(ctx, org, filter, "")
}

func (busyOrg) Since(time.Time) string { return "" }

func (busyOrg) Part(
	context.Context, string, domain.EventFilter, string, int, int, time.Duration,
) (domain.EventPage, error) {
	return domain.EventPage{}, nil
}

// busyFeed is a feed that receives an event every 5 ms.
type busyFeed struct {
	quiet    bool
	begun    time.Time
	reported int
}

func (*busyFeed) Cursor() string { return strings.Repeat("x", 28) }
func (*busyFeed) Close()         {}

func (c *busyFeed) Next(context.Context, int) ([]domain.EncodedEvent, error) {
	if c.quiet || c.reported >= int(time.Since(c.begun)*loadRate/time.Second) {
		return nil, nil
	}
	c.reported++
	hub := busyHub(c.reported * 7919 % loadHubs)
	envelope := fmt.Appendf(
		nil,
		`{"cursor":"%028d","type":"channel.observed","hub_id":%q,"device_id":%d,"time":%q,"clock_trusted":true,"data":{"key":"power","endpoint":0,"value":%d.5}}`,
		c.reported, hub, c.reported%17+1, domain.FormatTime(time.Now()), c.reported%3000,
	)
	return []domain.EncodedEvent{
		{
			Frame: fmt.Appendf(
				nil, "id: %028d\nevent: channel.observed\ndata: %s\n\n", c.reported, envelope,
			),
			Envelope: envelope,
		},
	}, nil
}

func (c *busyFeed) Ready() <-chan struct{} {
	if c.quiet {
		return nil
	}
	ready := make(chan struct{})
	time.AfterFunc(time.Second/loadRate, func() { close(ready) })
	return ready
}

func (c busyOrg) serve() http.Handler {
	p := page.New(page.Config{
		SignIn: c, People: c, ReadModels: c, Directory: c, Reported: c, Faults: c,
		Devices: c, Events: c, Feed: c, Hubs: busyOrgHubs{},
		DisconnectReason: func(domain.HubID) *string { return nil },
		PublicURL:        "http://127.0.0.1", Environment: domain.EnvironmentDev,
	})
	router := chi.NewRouter()
	for _, route := range p.Routes() {
		router.MethodFunc(
			route.Method,
			route.Pattern,
			func(w http.ResponseWriter, r *http.Request) {
				r.AddCookie(&http.Cookie{Name: "hubcloud_session", Value: "session"})
				route.Handle(
					w,
					r,
					page.RequestInfo{
						RequestID: "01M7YFSWB1B2J5HN6GSRPC9BZB",
						At:        time.Now(),
						Network:   netip.MustParsePrefix("127.0.0.1/32"),
					},
				)
			},
		)
	}
	return router
}

// TestDashboardUnderLoad shows 500 hubs that report 200 events a second. The page must be light, use
// at most a twentieth of a core on a quiet machine, and must not grow.
func TestDashboardUnderLoad(t *testing.T) {
	server := httptest.NewServer(busyOrg{}.serve())
	t.Cleanup(server.Close) // runs after the browser has closed its stream
	allowed := maxShare
	if processorLoad(t) > busyLoad*float64(runtime.NumCPU()) {
		allowed = maxShareBusy
	}
	b := open(t, server.URL)
	for _, most := range []int{firstLoad, laterLoad} {
		b.goTo("/portal/org")
		b.await("#connection", "Live")
		size := b.loaded()
		t.Logf("the browser loaded %d KB", size>>10)
		if size > most || size < 4<<10 {
			t.Errorf("loaded %d bytes, want 4 KB to %d KB", size, most>>10)
		}
		b.checkShift("dashboard")
	}
	b.showAllEvents()
	b.await("#events", "Power ")
	duration, settled := loadTime, loadSettled
	if given, err := time.ParseDuration(os.Getenv(loadTimeVariable)); err == nil {
		duration, settled = given, max(loadSettled, given/5)
	}
	harness.Elapse(settled)
	// Each slow update of the list scheduled one update too many: after minutes the page made many
	// updates a second.
	b.do(
		"count",
		chromedp.Evaluate[chromedp.Void](
			`window.updates = 0; new MutationObserver(() => window.updates++).observe(document.getElementById("events"), { childList: true });0`,
		),
	)
	before := b.measure()
	began := time.Now()
	harness.Elapse(duration - settled)
	after := b.measure()
	took := time.Since(began)
	share := (after.busy - before.busy).Seconds() / took.Seconds()
	t.Logf(
		"main thread %.1f %% of a core over %s; memory %.0f KB after %s, %.0f KB after %s; nodes "+
			"%d, %d; listeners %d, %d",
		share*100,
		took.Round(time.Second),
		float64(before.bytes)/1024,
		settled,
		float64(after.bytes)/1024,
		duration,
		before.nodes,
		after.nodes,
		before.listeners,
		after.listeners,
	)
	if updates := eval[float64](b, "window.updates") / took.Seconds(); updates > maxUpdates {
		t.Errorf("updates of the list: got %.1f a second, want at most %.1f", updates, maxUpdates)
	}
	if share > allowed {
		t.Errorf("got %.1f %% of a core, want at most %.1f %%", share*100, allowed*100)
	}
	if after.bytes-before.bytes > maxGrowth || after.nodes-before.nodes > maxNewNodes ||
		after.listeners > before.listeners+10 {
		t.Errorf("the page grew from %+v to %+v", before, after)
	}
	if n := eval[int](b, `document.querySelectorAll("#events li").length`); n == 0 || n > 500 {
		t.Errorf("events in the list: got %d, want 1 to 500", n)
	}
}

// pageCost is the CPU time and memory of a page.
type pageCost struct {
	// busy is the CPU time of the main thread, which other work on the machine does not affect.
	busy time.Duration
	// bytes is the used heap after a garbage collection.
	bytes, nodes, listeners int
}

// measure returns the page's cost so far.
func (b *tab) measure() pageCost {
	b.t.Helper()
	var cost pageCost
	if _, err := chromedp.Call(b.ctx, performance.Enable, performance.EnableParams{
		TimeDomain: performance.EnableTimeDomainThreadTicks,
	}); err != nil {
		b.t.Fatal(err)
	}
	cost.busy = time.Duration(b.metrics()["TaskDuration"] * float64(time.Second))
	b.do("collect garbage", chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, heapprofiler.CollectGarbage, cdp.Empty{})
		return err
	}))
	got := b.metrics()
	cost.bytes, cost.nodes = int(got["JSHeapUsedSize"]), int(got["Nodes"])
	cost.listeners = int(got["JSEventListeners"])
	return cost
}

// metrics returns the browser's performance metrics of the page by name.
func (b *tab) metrics() map[string]float64 {
	b.t.Helper()
	got, err := chromedp.Call(b.ctx, performance.GetMetrics, cdp.Empty{})
	harness.Must(b.t, err)
	named := map[string]float64{}
	for _, m := range got.Metrics {
		named[m.Name] = m.Value
	}
	return named
}
