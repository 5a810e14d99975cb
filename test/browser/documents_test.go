package browser

import (
	"context"
	"testing"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
)

// clipboard returns what the page has copied.
func clipboard(b *tab) string {
	b.t.Helper()
	b.do("allow reading the clipboard", chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, cdpbrowser.SetPermission, cdpbrowser.SetPermissionParams{
			Permission: &cdpbrowser.PermissionDescriptor{Name: "clipboard-read"}, Setting: "granted",
		})
		return err
	}))
	return eval[string](b, "navigator.clipboard.readText()")
}

// TestGuides reads a guide: its contents, a link to a section, and a command to copy.
func TestGuides(t *testing.T) {
	t.Parallel()
	b := open(t, services.Target(t).OwnService().Public())
	b.goTo("/docs/")
	b.check("guides")
	b.click(`main a[href="first-call"]`)
	b.await("h1", "First call")
	b.check("guide")
	b.click(`.contents a[href="#list-the-hubs"]`)
	if top := eval[float64](b, `document.querySelector("#list-the-hubs").getBoundingClientRect().top`); top < 0 || top > 200 {
		t.Errorf("the section is %v pixels below the top of the window, want it in sight", top)
	}
	b.click("#list-the-hubs ~ .code .copy")
	b.await("#list-the-hubs ~ .code .copy", "Copied")
	const want = `api "$HUBCLOUD_URL/hubs" | jq -r '.data[] | "\(.id) \(.connection.status)"'` + "\n"
	if copied := clipboard(b); copied != want {
		t.Errorf("copied is %q, want the guide's command %q", copied, want)
	}
	b.goTo("/link/")
	b.check("hub protocol")
}
