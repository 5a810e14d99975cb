package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
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
	"hubcloud/httpapi/portal/live"
	"hubcloud/test/harness"
)

const (
	// loadHubs and loadRate are what a page of a large organization has to bear; loadTime how long
	// it is watched, unless loadTimeVariable says.
	loadHubs         = 500
	loadRate         = 200
	loadTime         = 20 * time.Second
	loadTimeVariable = "HUBCLOUD_TEST_LOAD_TIME"
	// loadShare is the most of a core that the page's main thread may take, loadGrowth the most
	// bytes that its memory may grow, loadNodes the most nodes. loadSettled is after how long a
	// page has all that it keeps: 500 events, and what is called what.
	loadShare   = 0.10
	loadGrowth  = 2 << 20
	loadNodes   = 500
	loadSettled = 5 * time.Second
	// loadScreens is the most times a second that the list may change.
	loadScreens = 1.2
)

// crowd is an organization with many hubs that all have something to say. Only the portal and the
// browser are real: what is measured is the page.
type crowd struct {
	page.SignIn
	page.ReadModels
	page.Directory
	live.Devices
}

func crowdHub(i int) domain.HubID { return domain.HubID(fmt.Sprintf("hub-aaaa-bbbb-%04d", i)) }

func (crowd) Session(context.Context, string, time.Time) (domain.PortalSession, error) {
	return domain.PortalSession{
		AccountID: "account",
		Email:     "ann@example.org",
		FormToken: "token",
	}, nil
}

func (crowd) Ended(string) (<-chan struct{}, func()) { return nil, func() {} }

func (crowd) Memberships(string) []domain.MemberAccess { return nil }

func (crowd) Membership(org, _ string) (domain.MemberAccess, bool) {
	return domain.MemberAccess{
		OrgID:    org,
		OrgName:  "Crowd",
		MemberID: "member",
		Role:     domain.RoleOwner,
	}, true
}

func (crowd) Sites(context.Context, string, int, string) (domain.Page[domain.Site], error) {
	sites := domain.Page[domain.Site]{}
	for i := range 20 {
		sites.Data = append(
			sites.Data, domain.Site{ID: fmt.Sprint("site-", i), Name: fmt.Sprint("Site ", i)},
		)
	}
	return sites, nil
}

func (crowd) Hubs(context.Context, string, *string, int, string) (domain.Page[domain.Hub], error) {
	hubs := domain.Page[domain.Hub]{}
	for i := range loadHubs {
		name := fmt.Sprint("Hub ", i)
		hubs.Data = append(hubs.Data, domain.Hub{
			ID: crowdHub(
				i,
			), Name: &name, SiteID: fmt.Sprint("site-", i%20), Status: domain.HubOnline,
			Since: time.Unix(1_760_000_000, 0).UTC(),
		})
	}
	return hubs, nil
}

func (crowd) Hub(context.Context, string, domain.HubID) (domain.Hub, error) {
	return domain.Hub{}, domain.ErrHubNotFound()
}

func (crowd) DeviceLabels(
	context.Context, string, domain.HubID,
) (map[int64]domain.DeviceLabel, error) {
	return nil, nil
}

// List is what each hub has: devices with names, which the list of events shows.
func (crowd) List(context.Context, domain.HubID) ([]domain.Device, error) {
	var devices []domain.Device
	for id := range int64(18) {
		devices = append(devices, domain.Device{ID: id, Name: fmt.Sprint("Meter ", id)})
	}
	return devices, nil
}

// Hub returns the organization's access for every hub.
func (crowdOwners) Hub(domain.HubID) (domain.HubAccess, bool) {
	return domain.HubAccess{OrgID: "org"}, true
}

type crowdOwners struct{}

func (crowd) Page(context.Context, domain.HubID, string, int) (domain.EventPage, error) {
	return domain.EventPage{}, nil
}

func (crowd) At(context.Context, domain.HubID, time.Time) (string, error) { return "", nil }

func (crowd) Group() live.EventGroup {
	return &chatter{begun: time.Now()}
}

// chatter is logs to which an event is added every 5 ms.
type chatter struct {
	begun    time.Time
	reported int
}

func (*chatter) Follow(context.Context, domain.HubID, string) error { return nil }
func (*chatter) Leave(domain.HubID)                                 {}

func (*chatter) Cursor(domain.HubID) string {
	return strings.Repeat("x", 28)
}
func (*chatter) Close() {}

func (c *chatter) Next(context.Context, int) (domain.HubID, []domain.EncodedEvent, error) {
	if c.reported >= int(time.Since(c.begun)*loadRate/time.Second) {
		return "", nil, nil
	}
	c.reported++
	hub := crowdHub(c.reported * 7919 % loadHubs)
	envelope := fmt.Appendf(
		nil,
		`{"cursor":"%028d","type":"channel.observed","hub_id":%q,"device_id":%d,"time":%q,"clock_trusted":true,"data":{"key":"power","endpoint":0,"value":%d.5}}`,
		c.reported, hub, c.reported%17+1, domain.FormatTime(time.Now()), c.reported%3000,
	)
	return hub, []domain.EncodedEvent{
		{
			Frame: fmt.Appendf(
				nil, "id: %028d\nevent: channel.observed\ndata: %s\n\n", c.reported, envelope,
			),
			Envelope: envelope,
		},
	}, nil
}

func (c *chatter) Ready() <-chan struct{} {
	ready := make(chan struct{})
	time.AfterFunc(time.Second/loadRate, func() { close(ready) })
	return ready
}

func (crowd) serve() http.Handler {
	c := crowd{}
	p := page.New(page.Config{
		SignIn: c, People: c, ReadModels: c, Directory: c, Owners: crowdOwners{},
		PublicURL: "http://127.0.0.1",
		Live: live.New(
			live.Config{
				ReadModels:       c,
				Devices:          c,
				Events:           c,
				DisconnectReason: func(domain.HubID) *string { return nil },
			},
		),
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

// TestDashboardUnderLoad: 500 hubs and 200 events a second take a tenth of a core at most, and the
// page does not grow.
func TestDashboardUnderLoad(t *testing.T) {
	server := httptest.NewServer(crowd{}.serve())
	t.Cleanup(server.Close) // after the browser, which has a stream open
	b := open(t, server.URL)
	b.goTo("/portal/org")
	b.await("#connection", "Live")
	b.await("#events", "Power is")
	long := loadTime
	settled := loadSettled
	if given, err := time.ParseDuration(os.Getenv(loadTimeVariable)); err == nil {
		long, settled = given, max(loadSettled, given/5)
	}
	harness.Elapse(settled)
	// Each screen that took the browser its time began another row of screens beside it: after
	// minutes there were many a second, of ever more work.
	b.do(
		"count",
		chromedp.Evaluate[chromedp.Void](
			`window.screens = 0; new MutationObserver(() => window.screens++).observe(document.getElementById("events"), { childList: true });0`,
		),
	)
	before := b.measure()
	began := time.Now()
	harness.Elapse(long - settled)
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
		long,
		before.nodes,
		after.nodes,
		before.listeners,
		after.listeners,
	)
	if screens := eval[float64](b, "window.screens") / took.Seconds(); screens > loadScreens {
		t.Errorf("%.1f screens a second", screens)
	}
	if share > loadShare {
		t.Errorf("the page takes %.1f %% of a core", share*100)
	}
	if after.bytes-before.bytes > loadGrowth || after.nodes-before.nodes > loadNodes ||
		after.listeners > before.listeners+10 {
		t.Errorf("the page grows from %+v to %+v", before, after)
	}
	if n := eval[int](b, `document.querySelectorAll("#events li").length`); n == 0 || n > 500 {
		t.Errorf("%d events are shown", n)
	}
	b.shoot("load")
}

// burden is what a page costs.
type burden struct {
	// busy is how long its main thread has worked, in the processor's time: what else the machine
	// does does not count.
	busy time.Duration
	// bytes, nodes and listeners are what it holds once its garbage is gone.
	bytes, nodes, listeners int
}

func (b *tab) measure() burden {
	b.t.Helper()
	var held burden
	if _, err := chromedp.Call(b.ctx, performance.Enable, performance.EnableParams{
		TimeDomain: performance.EnableTimeDomainThreadTicks,
	}); err != nil {
		b.t.Fatal(err)
	}
	held.busy = time.Duration(b.metrics()["TaskDuration"] * float64(time.Second))
	b.do("collect garbage", chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, heapprofiler.CollectGarbage, cdp.Empty{})
		return err
	}))
	got := b.metrics()
	held.bytes, held.nodes, held.listeners = int(got["JSHeapUsedSize"]), int(got["Nodes"]), int(got["JSEventListeners"])
	return held
}

func (b *tab) metrics() map[string]float64 {
	b.t.Helper()
	got, err := chromedp.Call(b.ctx, performance.GetMetrics, cdp.Empty{})
	if err != nil {
		b.t.Fatal(err)
	}
	named := map[string]float64{}
	for _, m := range got.Metrics {
		named[m.Name] = m.Value
	}
	return named
}
