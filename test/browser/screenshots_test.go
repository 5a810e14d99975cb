package browser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"hubcloud/streams/streamstest"
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
	p, pages := estate(t)
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
			if eval[bool](p.tab, `document.getElementById("live-data") !== null`) {
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
			streamstest.Must(t, err)
		}
	}
}
