package browser

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"hubcloud/hubbridge/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// faster has the timers of pages to come that last longer than ten seconds end forty times as soon:
// nobody waits for them here.
const faster = `{
	const slow = setTimeout;
	window.setTimeout = (done, pause, ...given) => slow(done, pause > 10_000 ? pause / 40 : pause, ...given);
}`

// heard keeps what pages to come say about their connection.
const heard = `addEventListener("DOMContentLoaded", () => {
	const element = document.getElementById("connection");
	window.heard = [];
	element && new MutationObserver(() => window.heard.push(element.textContent)).observe(element, { childList: true, characterData: true, subtree: true });
})`

// before runs a script before each page to come.
func (b *tab) before(script string) {
	b.t.Helper()
	params := page.AddScriptToEvaluateOnNewDocumentParams{Source: script}
	if _, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, params); err != nil {
		b.t.Fatal(err)
	}
}

// hide has the page believe that nobody sees it, or that somebody does again.
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

// temperature has a thermostat report.
func (p *portal) temperature(value float64) {
	p.t.Helper()
	if err := p.hub.Report(2, virtualhub.ChannelRef{Key: "temperature"}, value); err != nil {
		p.t.Fatal(err)
	}
}

// temperatures are those that the list of events shows, newest first.
func (p *portal) temperatures() []string {
	return eval[[]string](
		p.tab,
		`[...document.querySelectorAll("#events .what")].map((e) => e.textContent).filter((t) => t.startsWith("Temperature is ")).map((t) => t.slice(15))`,
	)
}

// TestSteady: a page that is open all day loses nothing, repeats nothing and does not fidget,
// whatever becomes of its connection.
func TestSteady(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "Steady", "--stream-lifetime", "2s")
	p.before(faster)
	p.before(heard)
	p.goTo("/portal/" + p.tenant.Org)
	p.await("#connection", "Live")

	// A stream ends with its lifetime, every quarter of an hour: the page said "Connection lost.
	// Reconnecting…" each time, aloud to those who listen to it.
	var want []string
	for i := range 12 {
		value := 10.5 + float64(i)
		p.temperature(value)
		want = append([]string{fmt.Sprint(value)}, want...)
		p.await("#events", fmt.Sprint("Temperature is ", value))
		harness.Elapse(500 * time.Millisecond) // several lifetimes of a stream in all
	}
	if got := p.temperatures(); !slices.Equal(got, want) {
		t.Errorf("over several streams the page shows %v, not %v", got, want)
	}
	if said := eval[[]string](p.tab, "window.heard"); slices.ContainsFunc(
		said, func(s string) bool { return strings.Contains(s, "again") },
	) {
		t.Errorf("it says %q", said)
	}

	// A page that nobody sees gives its connection up, and catches up when somebody does.
	p.hide(true)
	p.await("#connection", "Reconnecting")
	p.temperature(30.5)
	harness.Stored(t, p.hub)
	if got := p.temperatures(); got[0] == "30.5" {
		t.Error("a page that nobody sees has its connection still")
	}
	p.hide(false)
	p.await("#connection", "Live")
	p.await("#events", "Temperature is 30.5")
	if got := p.temperatures(); len(got) != 13 {
		t.Errorf("after it was hidden it shows %v", got)
	}

	// A machine that has slept has a connection that only looks alive, and the page waited for a
	// minute and a half until it saw that. What it missed for long is left to the logs, and it says
	// so: it only began anew, as if nothing had been there before.
	p.do(
		"sleep",
		chromedp.Evaluate[chromedp.Void](
			`{ const now = Date.now; Date.now = () => now() + 3_600_000 };0`,
		),
	)
	p.await("#events", "Offline since")
	p.await("#connection", "Live")
	p.temperature(31.5)
	p.await("#events", "Temperature is 31.5")

	// What is gone is said where it would have been.
	if err := p.hub.FactoryReset(); err != nil {
		t.Fatal(err)
	}
	p.await("#events", "Events are missing here")
	p.check("missed")

	// A service that is killed is awaited calmly, and found again.
	p.service.Kill()
	p.await("#connection", "Reconnecting")
	p.check("away")
	p.service.Begin()
	p.await("#connection", "Live")
	p.await(`[data-count="online"]`, "1")
	p.temperature(32.5)
	p.await("#events", "Temperature is 32.5")
	p.quiet() // a service that is away shows there
}

// TestPauseLosesNothing: what came while the list stood still was shown as far as a screen of sixty
// goes, and the rest was lost.
func TestPauseLosesNothing(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "Pause")
	p.await("#connection", "Live")
	p.click("#pause")
	const events = 200
	for i := range events {
		p.temperature(float64(i) + 0.5)
	}
	p.await("#pause", fmt.Sprint(events, " new"))
	p.click("#pause")
	p.await("#events", "Temperature is 199.5")
	got := p.temperatures()
	if len(got) != events || got[0] != "199.5" || got[events-1] != "0.5" {
		t.Errorf("%d of %d events are there, from %s", len(got), events, got[0])
	}
	p.click("#pause")
	if _, err := p.hub.Flood(600); err != nil {
		t.Fatal(err)
	}
	p.await("#pause", "the newest 500 kept")

	// Devices were told by number: their names are their hub's, or those that people gave them.
	p.click("#pause")
	p.temperature(17.5)
	p.await("#events", "Temperature is 17.5")
	p.fill("#filter-device", "thermostat")
	p.await("#events .where", "Hall thermostat")
	if n := eval[int](p.tab, `document.querySelectorAll("#events li").length`); n != 1 {
		t.Errorf("%d rows of one event", n)
	}
	p.check("busy")
}

// TestReleased: a dashboard that was open went on showing a hub that had been taken from the
// organization.
func TestReleased(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "Released")
	id := string(p.target.VirtualHub(p.tenant, virtualhub.Config{}).ID())
	p.goTo("/portal/" + p.tenant.Org)
	p.await("#connection", "Live")
	p.await(`[data-count="all"]`, "2")
	places := fmt.Sprintf(
		`document.querySelectorAll('[data-hub="%[1]s"], option[value="%[1]s"]').length`, id,
	)
	if n := eval[int](p.tab, places); n != 2 {
		t.Fatalf("the hub is at %d places of the page, not in the list and among the choices", n)
	}
	eval[bool](p.tab, "window.loaded = true")
	p.service.CLI("inventory", "release", strings.ToUpper(id))
	p.await(`[data-count="all"]`, "1")
	streamstest.Eventually(t, "the hub is gone from the page",
		func() bool { return eval[int](p.tab, places) == 0 },
	)
	if rows := eval[int](
		p.tab, `window.loaded ? document.querySelectorAll("#sites [data-hub]").length : -1`,
	); rows != 1 {
		t.Errorf("%d hubs are shown (-1: the page was loaded again)", rows)
	}
	p.await("#connection", "Live")
}
