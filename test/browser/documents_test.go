package browser

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
)

// clipboard is held by a test from copying to reading: all tabs have the same.
var clipboard sync.Mutex

// copied presses a button that copies, and returns what it has copied.
func copied(b *tab, button string) string {
	b.t.Helper()
	clipboard.Lock()
	defer clipboard.Unlock()
	b.do("allow reading the clipboard", chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, cdpbrowser.SetPermission, cdpbrowser.SetPermissionParams{
			Permission: &cdpbrowser.PermissionDescriptor{Name: "clipboard-read"}, Setting: "granted",
			BrowserContextID: chromedp.FromContext(b.ctx).BrowserContextID,
		})
		return err
	}))
	b.click(button)
	b.await(button, "Copied")
	return eval[string](b, "navigator.clipboard.readText()")
}

// TestGuides reads a guide: its contents, a link to a section, and a command to copy.
func TestGuides(t *testing.T) {
	t.Parallel()
	b := open(t, shared.Target(t).OwnService().Public())
	b.goTo("/docs/")
	b.check("guides")
	b.click(`main a[href="first-call"]`)
	b.await("h1", "First call")
	b.check("guide")
	b.click(`.contents a[href="#list-the-hubs"]`)
	if top := eval[float64](b, `document.querySelector("#list-the-hubs").getBoundingClientRect().top`); top < 0 || top > 200 {
		t.Errorf("the section is %v pixels below the top of the window, want it in sight", top)
	}
	const want = `api "$HUBCLOUD_URL/hubs" | jq -r '.data[] | "\(.id) \(.connection.status)"'` + "\n"
	if got := copied(b, "#list-the-hubs ~ .code .copy"); got != want {
		t.Errorf("copied is %q, want the guide's command %q", got, want)
	}
	b.goTo("/link/")
	b.check("hub protocol")
}

// TestReference tries the API on the reference page: a list with and without a key, a creation twice,
// each under a key of its own, a stream that is shown as it comes and stopped, and a file.
func TestReference(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "Reference")
	p.expect(http.StatusUnauthorized)
	p.goTo("/v1/reference")
	p.check("reference")
	p.click(`.contents a[href="#listHubs"]`)
	p.click("#listHubs .primary")
	p.await("#listHubs .status", "Enter an API key")
	p.fill("#api-key", p.tenant.Key)
	p.click("#listHubs .primary")
	p.await("#listHubs .status", "200 OK")
	p.await("#listHubs .output", p.hub.ID())
	p.click("#listHubs .as-curl summary")
	got := copied(p.tab, "#listHubs .as-curl .copy")
	if !strings.Contains(got, "/v1/hubs'") || strings.Contains(got, p.tenant.Key) {
		t.Errorf("as curl got %q, want the request without the key", got)
	}
	p.checkIn("an answer", "#listHubs")

	p.click(`.contents a[href="#createSite"]`)
	for range 2 {
		p.click("#createSite .primary")
		p.await("#createSite .status", "201 Created")
		eval[any](p.tab, `document.querySelector("#createSite .status").textContent = ""`)
	}
	var sites struct{ Data []struct{ Name string } }
	p.tenant.Must(http.MethodGet, "/sites", nil, http.StatusOK).JSON(t, &sites)
	created := 0
	for _, site := range sites.Data {
		if site.Name == "North wing" { // the example
			created++
		}
	}
	if created != 2 {
		t.Errorf("got the sites %v after two requests, want two of them: each has a key of its own", sites.Data)
	}

	p.click(`.contents a[href="#streamOrganizationEvents"]`)
	p.click("#streamOrganizationEvents .primary")
	p.await("#streamOrganizationEvents .status", "200 OK, open")
	p.report(12, "smoke", true)
	p.await("#streamOrganizationEvents .output", "event: channel.observed")
	p.checkIn("a stream", "#streamOrganizationEvents")
	p.click("#streamOrganizationEvents .stop")
	p.await("#streamOrganizationEvents .status", "stopped")

	p.click(`.contents a[href="#exportAudit"]`)
	p.click("#exportAudit .primary")
	p.await("#exportAudit .output", "site.created")
	p.await("#exportAudit .file", "Save audit.csv")

	p.fill("#search", "pairing open")
	if shown := eval[int](p.tab, `document.querySelectorAll("details.operation:not([hidden])").length`); shown != 1 {
		t.Errorf("the search shows %d operations, want the one that opens the pairing window", shown)
	}
}
