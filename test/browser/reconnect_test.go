package browser

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// shortTimers is a script that divides timeouts of more than ten seconds by forty.
const shortTimers = `{
	const slow = setTimeout;
	window.setTimeout = (done, pause, ...given) => slow(done, pause > 10_000 ? pause / 40 : pause, ...given);
}`

// recordConnection is a script that records the texts of the connection's status.
const recordConnection = `addEventListener("DOMContentLoaded", () => {
	const element = document.getElementById("connection");
	window.connectionTexts = [];
	element && new MutationObserver(() => window.connectionTexts.push(element.textContent)).observe(element, { childList: true, characterData: true, subtree: true });
})`

// runBeforePages runs a script before every page that the tab opens from now on.
func (b *tab) runBeforePages(script string) {
	b.t.Helper()
	params := page.AddScriptToEvaluateOnNewDocumentParams{Source: script}
	if _, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, params); err != nil {
		b.t.Fatal(err)
	}
}

// hide makes the page believe that it is hidden, as in a background tab, or visible again.
func (b *tab) hide(hidden bool) {
	b.t.Helper()
	b.do(
		"hide",
		chromedp.Evaluate[chromedp.Void](
			fmt.Sprintf(
				`Object.defineProperty(document, "hidden", { value: %v, configurable: true });
		document.dispatchEvent(new Event("visibilitychange"));0`,
				hidden,
			),
		),
	)
}

// temperature makes the thermostat report a value.
func (p *portal) temperature(value float64) {
	p.t.Helper()
	harness.Must(p.t, p.hub.Report(2, virtualhub.ChannelRef{Key: "temperature"}, value))
}

// temperatures returns the values in the page's list of events, newest first.
func (p *portal) temperatures() []string {
	return eval[[]string](
		p.tab,
		`[...document.querySelectorAll("#events .what")].map((e) => e.textContent).filter((t) => t.startsWith("Temperature ")).map((t) => parseFloat(t.slice(12)).toFixed(1))`,
	)
}

// TestReconnects interrupts the connection of an open page in several ways. The page must neither
// lose nor repeat an event.
func TestReconnects(t *testing.T) {
	t.Parallel()
	p := newOwnPortal(t, virtualhub.Config{}, "Reconnects", "--stream-lifetime", "2s")
	p.runBeforePages(shortTimers)
	p.runBeforePages(recordConnection)
	p.goTo("/portal/" + p.tenant.Org)
	p.await("#connection", "Live")
	p.showAllEvents()

	// When a stream ends with its lifetime, the page reconnects without announcing it: screen
	// readers must not say "Connection lost. Reconnecting…" every quarter of an hour.
	var want []string
	for i := range 12 {
		value := 10.5 + float64(i)
		p.temperature(value)
		want = append([]string{fmt.Sprint(value)}, want...)
		p.await("#events", fmt.Sprint("Temperature ", value))
		harness.Elapse(500 * time.Millisecond) // the loop takes several lifetimes of a stream
	}
	if got := p.temperatures(); !slices.Equal(got, want) {
		t.Errorf("events over several streams: got %v, want %v", got, want)
	}
	if texts := eval[[]string](p.tab, "window.connectionTexts"); slices.ContainsFunc(
		texts, func(s string) bool { return strings.Contains(s, "again") },
	) {
		t.Errorf("status texts of the connection: got %q, want none about reconnecting", texts)
	}

	// A hidden page closes its connection, and catches up when it is visible again.
	p.hide(true)
	p.await("#connection", "Reconnecting")
	p.temperature(30.5)
	harness.Stored(t, p.hub)
	if got := p.temperatures(); got[0] == "30.5" {
		t.Error("a hidden page received an event, want its connection closed")
	}
	p.hide(false)
	p.await("#connection", "Live")
	p.await("#events", "Temperature 30.5")
	if got := p.temperatures(); len(got) != 13 {
		t.Errorf("events after the page was hidden: got %v, want 13", got)
	}

	// After the computer has slept, the connection only looks alive: the page waited for a minute
	// and a half until it noticed. The page does not load events from a long time offline. It must
	// show that they are missing, and not start over without a note.
	p.do(
		"sleep",
		chromedp.Evaluate[chromedp.Void](
			`{ const now = Date.now; Date.now = () => now() + 3_600_000 };0`,
		),
	)
	p.await("#events", "Offline since")
	p.await("#connection", "Live")
	p.temperature(31.5)
	p.await("#events", "Temperature 31.5")

	// The list marks where events are missing: those that a hub's log had before it was reset.
	p.hide(true)
	p.await("#connection", "Reconnecting")
	p.temperature(25.5)
	harness.Stored(t, p.hub)
	harness.Must(t, p.hub.FactoryReset())
	harness.Connected(t, p.hub)
	p.hide(false)
	p.await("#events", "Events are missing here: the hub was reset")
	p.await("#connection", "Live")
	if got := p.temperatures(); slices.Contains(got, "25.5") {
		t.Errorf("events after a reset: got %v, want none of the former log", got)
	}
	p.checkIn("missed", "#events")

	// After the service was killed, the page reconnects, and gets what the hub had meanwhile.
	p.service.Kill()
	p.await("#connection", "Reconnecting")
	p.check("away")
	p.temperature(32.5)
	p.service.Begin()
	p.await("#connection", "Live")
	p.await(`[data-count="online"]`, "1")
	p.await("#events", "Temperature 32.5")
	p.clearConsole() // failed connections are written there
}

// TestBeginsAnew keeps the page of a quiet hub open for longer than events are kept, and then hides
// it for that long. An open page's position must not expire. The hidden page's has: it must say so,
// and show what the hub has meanwhile.
func TestBeginsAnew(t *testing.T) {
	t.Parallel()
	const retention = 12 * time.Second
	p := newOwnPortal(
		t, virtualhub.Config{}, "Anew",
		"--event-retention", retention.String(), "--stream-lifetime", "3s", "--stream-keepalive", "1500ms",
	)
	p.runBeforePages(shortTimers)
	p.goTo(p.hubPage())
	p.await("#connection", "Live")
	p.showAllEvents()
	harness.Elapse(retention * 5 / 4)
	p.temperature(17.5)
	p.await("#events", "Temperature 17.5")
	if eval[bool](p.tab, `document.getElementById("events").textContent.includes("Offline since")`) {
		t.Error("an open page began anew, want it to continue")
	}
	p.hide(true)
	p.await("#connection", "Reconnecting")
	p.temperature(27.5)
	harness.Elapse(retention * 5 / 4)
	p.hide(false)
	p.await("#events", "Offline since")
	p.await("#connection", "Live")
	p.await(channel(2, "temperature", ".value"), "27.5")
	p.temperature(18.5)
	p.await("#events", "Temperature 18.5")
	p.await(channel(2, "temperature", ".value"), "18.5")
	if got := p.temperatures(); !slices.Equal(got, []string{"18.5"}) {
		t.Errorf("events after beginning anew: got %v, want 18.5", got)
	}
	p.checkIn("anew", "#events")
}

// TestPauseLosesNothing pauses the list of events. Events beyond the first sixty of a pause were
// lost.
func TestPauseLosesNothing(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "Pause")
	p.await("#connection", "Live")
	p.showAllEvents()
	p.click("#pause")
	const events = 200
	for i := range events {
		p.temperature(float64(i) + 0.5)
	}
	p.await("#pause", fmt.Sprint(events, " new"))
	p.click("#pause")
	p.await("#events", "Temperature 199.5")
	got := p.temperatures()
	if len(got) != events || got[0] != "199.5" || got[events-1] != "0.5" {
		t.Errorf(
			"events after a pause: got %d from %s to %s, want %d from 199.5 to 0.5",
			len(got), got[0], got[len(got)-1], events,
		)
	}
	p.click("#pause")
	if _, err := p.hub.Emit(harness.Readings(600)...); err != nil {
		t.Fatal(err)
	}
	p.await("#pause", "the newest 500 kept")

	// The filter finds devices by name; it only knew their numbers.
	p.click("#pause")
	p.temperature(17.5)
	p.await("#events", "Temperature 17.5")
	p.fill("#filter-device", "thermostat")
	p.await("#events .where", "Hall thermostat")
	if n := eval[int](p.tab, `document.querySelectorAll("#events li").length`); n != 1 {
		t.Errorf("rows of one event: got %d, want 1", n)
	}
	p.check("busy")
}

// TestSiteIsLive changes the hubs of a site while its page is open. The page showed what was true
// when it was loaded.
func TestSiteIsLive(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "Site")
	p.await("#connection", "Live")
	p.press("#sites h2 a")
	p.await("#connection", "Live")
	eval[bool](p.tab, "window.loaded = true")
	row := func(id string) string { return fmt.Sprintf(`#site-hubs [data-hub="%s"]`, id) }
	p.await(row(p.hub.ID())+" .tag", "online")
	added := string(p.target.VirtualHub(p.tenant, virtualhub.Config{}).ID())
	p.await(row(added)+" .tag", "online")
	p.await("#site-count", "2 hubs")
	p.check("site-live")
	p.hub.Offline(true)
	p.await(row(p.hub.ID())+" .tag", "offline")
	p.await(row(p.hub.ID())+" .reason", "closed the connection")
	p.service.CLI("inventory", "release", strings.ToUpper(added))
	p.await("#site-count", "1 hub")
	if !eval[bool](p.tab, fmt.Sprintf(
		"window.loaded && document.querySelector(%q) === null", row(added),
	)) {
		t.Error("the page was loaded again, or has the released hub, want neither")
	}
}

// TestReleased releases a hub while the dashboard is open. The dashboard kept showing the hub.
func TestReleased(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "Released")
	id := string(p.target.VirtualHub(p.tenant, virtualhub.Config{}).ID())
	p.goTo("/portal/" + p.tenant.Org)
	p.await("#connection", "Live")
	p.await(`[data-count="all"]`, "2")
	mentions := fmt.Sprintf(
		`document.querySelectorAll('[data-hub="%[1]s"], option[value="%[1]s"]').length`, id,
	)
	if n := eval[int](p.tab, mentions); n != 2 {
		t.Fatalf("elements for the hub: got %d, want 2, in the list and in the filter", n)
	}
	eval[bool](p.tab, "window.loaded = true")
	p.service.CLI("inventory", "release", strings.ToUpper(id))
	p.await(`[data-count="all"]`, "1")
	streamstest.Eventually(t, "the page names the hub nowhere",
		func() bool { return eval[int](p.tab, mentions) == 0 },
	)
	if rows := eval[int](
		p.tab, `window.loaded ? document.querySelectorAll("#sites [data-hub]").length : -1`,
	); rows != 1 {
		t.Errorf("hubs on the page: got %d (-1: the page was reloaded), want 1", rows)
	}
	p.await("#connection", "Live")
}
