package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/test/harness"
)

// screenshotsVariable is the environment variable with the folder of TestScreenshots, and
// pagesVariable may have the names of the pages that it takes, with commas between.
const (
	screenshotsVariable = "HUBCLOUD_TEST_SCREENSHOTS"
	pagesVariable       = "HUBCLOUD_TEST_PAGES"
)

// TestScreenshots takes pictures of every page, in light and dark colors, on a desktop and a phone.
// `make screenshots` runs it, for whoever changes a page.
func TestScreenshots(t *testing.T) {
	folder := os.Getenv(screenshotsVariable)
	if folder == "" {
		t.Skipf("%s is not set", screenshotsVariable)
	}
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
	p.report(12, "smoke", true)
	p.report(13, "contact", true)
	harness.Stored(t, p.hub)
	org, hub := "/portal/"+p.tenant.Org, p.hubPage()
	pages := map[string]string{
		"overview": org, "sites": org + "/sites", "devices": org + "/devices",
		"found": org + "/devices?show=locks", "rooms": org + "/rooms", "events": org + "/events",
		"activity": org + "/activity", "commands": org + "/activity/commands",
		"people": org + "/members", "keys": org + "/keys", "readers": org + "/readers",
		"settings": org + "/settings", "notifications": org + "/notifications",
		"help": org + "/help", "hub": hub, "lock": hub + "/devices/1", "meter": hub + "/devices/8",
		"log": hub + "/events", "organizations": "/portal/organizations",
	}
	chosen := os.Getenv(pagesVariable)
	for name, address := range pages {
		if chosen != "" && !strings.Contains(","+chosen+",", ","+name+",") {
			continue
		}
		for _, look := range []struct {
			name, scheme string
			width        int64
		}{
			{"desktop-light", "light", 1440}, {"desktop-dark", "dark", 1440},
			{"phone-light", "light", 390}, {"phone-dark", "dark", 390},
		} {
			p.do("emulate "+look.name, chromedp.EmulateViewport(look.width, 900), prefer(look.scheme))
			p.goTo(address)
			if eval[bool](p.tab, `document.getElementById("connection") !== null`) {
				p.await("#connection", "Live")
			}
			picture, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
			if err == nil {
				err = os.MkdirAll(folder, 0o755)
			}
			if err == nil {
				path := filepath.Join(folder, name+"-"+look.name+".png")
				err = os.WriteFile(path, picture, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}
