package browser

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/test/harness"
)

// estate returns a portal whose organization has several sites and hubs, an alarm and an open door,
// and the addresses of its pages by name.
func estate(t *testing.T) (*portal, map[string]string) {
	t.Helper()
	p := newPortal(t, "Harbour Estates")
	for i, site := range []string{"North Campus", "Old Mill"} {
		for j := range i + 2 {
			hub := p.target.VirtualHub(p.tenant, virtualhub.Config{})
			id := p.tenant.NewSite(fmt.Sprint(site, " ", j+1))
			p.tenant.Must("PATCH", "/hubs/"+hub.ID(), map[string]any{
				"site_id": id, "name": fmt.Sprint("Floor ", j+1),
			}, 200)
		}
	}
	p.report(2, "temperature", 21.5)
	p.report(12, "smoke", true)
	p.report(13, "contact", true)
	harness.Stored(t, p.hub)
	org, hub := "/portal/"+p.tenant.Org, p.hubPage()
	return p, map[string]string{
		"overview": org, "sites": org + "/sites", "devices": org + "/devices",
		"found": org + "/devices?kind=Locks", "rooms": org + "/rooms", "events": org + "/events", "book": org + "/book",
		"activity": org + "/activity", "commands": org + "/activity/commands",
		"people": org + "/members", "codes": org + "/codes", "keys": org + "/keys", "readers": org + "/readers",
		"webhooks": org + "/webhooks", "settings": org + "/settings",
		"notifications": org + "/notifications", "help": org + "/help", "hub": hub,
		"search": org + "/search?q=door", "lock": hub + "/devices/1",
		"thermostat": hub + "/devices/2", "meter": hub + "/devices/8",
		"log": hub + "/events", "reset": hub + "/reset-link", "remove": hub + "/remove",
		"organizations": "/portal/organizations", "guide": "/docs/event-streams", "protocol": "/link/",
		"reference": "/v1/reference#sendCommand",
	}
}

// media emulates media features, such as forced-colors, on a screen or on paper.
func media(medium string, features ...string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		params := emulation.SetEmulatedMediaParams{Media: medium}
		for i := 0; i < len(features); i += 2 {
			params.Features = append(params.Features, &emulation.MediaFeature{
				Name: features[i], Value: features[i+1],
			})
		}
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, params)
		return err
	})
}

// TestEveryPage opens every page as loads and readers differ: nothing moves while it loads, and
// nothing is wider than the window on the narrowest phone, which is also a desktop at 400 %, at
// 200 %, on the widest screen, in forced colors, and on paper. Members was 14 pixels too wide at 320,
// and the log moved by 0.17. Screen readers get headings in order, tables and controls with names, and no
// heap of alerts: the page of a hub had 17, and each of its lights a button "Set Level".
// A browser with an empty cache loads at most 150 KB for a page of the
// portal. axe-core checks the pages that no test of their own does.
func TestEveryPage(t *testing.T) {
	t.Parallel()
	p, pages := estate(t)
	if _, err := chromedp.Call(p.ctx, network.SetCacheDisabled, network.SetCacheDisabledParams{
		CacheDisabled: true,
	}); err != nil {
		t.Fatal(err)
	}
	for name, address := range pages {
		p.do("show "+name, chromedp.EmulateViewport(1300, 950), media(""))
		p.goTo(address)
		live := eval[bool](p.tab, `document.getElementById("live-data") !== null`)
		if live {
			p.await("#connection", "Live")
		}
		p.checkShift(name)
		if live {
			p.do("show "+name, chromedp.EmulateViewport(320, 700))
			p.goTo(address)
			p.await("#connection", "Live")
			p.checkShift(name + " on a small phone")
		}
		if wrong := eval[[]string](p.tab, unclear); len(wrong) > 0 {
			t.Errorf("%s: for screen readers: %q", name, wrong)
		}
		size := p.loaded()
		if strings.HasPrefix(address, "/portal/") && (size > firstLoad || size < 4<<10) {
			t.Errorf("%s: loaded %d bytes, want between 4 and 150 KB", name, size)
		}
		if slices.Contains([]string{
			"overview", "hub", "meter", "log", "reset", "sites", "activity", "search", "found", "organizations",
		}, name) {
			p.check(name)
			if cookies := eval[string](p.tab, "document.cookie"); cookies != "hubcloud_zone=UTC" {
				t.Errorf("%s: cookies that scripts can read: got %q, want only the time zone", name, cookies)
			}
		}
		for _, look := range []struct {
			name     string
			width    int64
			medium   string
			features []string
		}{
			{"a small phone", 320, "", nil},
			{"zoom 200 %", 640, "", []string{"prefers-reduced-motion", "reduce"}},
			{"a wide screen", 2560, "", []string{"prefers-color-scheme", "dark"}},
			{"forced colors", 1300, "", []string{"forced-colors", "active"}},
			{"paper", 720, "print", nil},
		} {
			// A low window, since only widths are tried: what is in sight is drawn.
			p.do("show "+name, chromedp.EmulateViewport(look.width, 200), media(look.medium, look.features...))
			if wide := eval[[]string](p.tab, tooWide); len(wide) > 0 {
				p.shoot(name + "-too-wide")
				t.Errorf("%s on %s: too wide: %q", name, look.name, wide)
			}
		}
		// Whoever finds a printed list did not know whose it is, and how old.
		if org := eval[string](p.tab, printed); org != "Harbour Estates" &&
			eval[bool](p.tab, `document.querySelector("body.app") !== null`) {
			t.Errorf("%s: on paper: got %q, want the organization and the time", name, org)
		}
		if left := eval[[]string](p.tab, pressable); len(left) > 0 {
			t.Errorf("%s: on paper: %q, want nothing to press", name, left)
		}
	}
}

const (
	// tooWide finds what is beyond the right edge of the window, outside of what scrolls by itself.
	tooWide = `(() => {
		const root = document.documentElement;
		if (root.scrollWidth <= root.clientWidth) return [];
		return ["by " + (root.scrollWidth - root.clientWidth), ...[...document.querySelectorAll("body *")]
			.filter((e) => e.getBoundingClientRect().right > root.clientWidth + 0.5)
			.map((e) => e.cloneNode().outerHTML).slice(0, 5)];
	})()`
	// unclear finds what axe-core does not: it knows neither twice the same name nor how much is read out.
	unclear = `(() => {
		const all = (selector) => [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility());
		const levels = all("h1, h2, h3, h4, h5, h6").map((e) => Number(e.localName[1]));
		const named = all(".control :is(button, summary), [name=device][type=checkbox]")
			.map((e) => e.ariaLabel ?? e.textContent.trim());
		const ids = ["aria-labelledby", "aria-describedby"].flatMap((name) => all("[" + name + "]")
			.flatMap((e) => e.getAttribute(name).split(/\s+/)));
		return [
			...(levels.filter((level) => level === 1).length === 1 ? [] : ["not one h1"]),
			...levels.filter((level, i) => i > 0 && level > levels[i - 1] + 1).map((level) => "jump to h" + level),
			...named.filter((name, i) => named.indexOf(name) < i).map((name) => "twice: " + name),
			...ids.filter((id) => !document.getElementById(id)).map((id) => "no element " + id),
			...all("table:not([aria-labelledby], [aria-label]), thead th:not([scope])").map((e) => e.outerHTML.slice(0, 80)),
			...[...document.querySelectorAll("[role=alert]")].slice(1).map((e) => "one more alert: " + e.outerHTML),
		];
	})()`
	// printed returns the organization that the page names on paper, with the time.
	printed = `(() => {
		dispatchEvent(new Event("beforeprint"));
		const head = document.querySelector(".on-paper");
		return head?.checkVisibility() && document.getElementById("printed").textContent.includes(new Date().getFullYear())
			? head.querySelector("bdi").textContent : "";
	})()`
	// pressable finds buttons and fields that are visible, and the heads of columns that are not: they
	// are buttons that sort.
	pressable = `[...document.querySelectorAll("button, input:not([type=hidden]), select")]
		.filter((e) => e.checkVisibility() === !e.matches("th button")).map((e) => e.outerHTML).slice(0, 5)`
)
