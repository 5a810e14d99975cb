package browser

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"hubcloud/streams/streamstest"
)

// artifacts is where screenshots go; git ignores it.
const artifacts = "../artifacts"

// tab is a tab of a browser with a profile of its own.
type tab struct {
	t *testing.T
	// ctx identifies the tab to chromedp, which keeps its state in contexts.
	ctx    context.Context
	origin string

	mu    sync.Mutex
	asked []string // the addresses that pages have asked for
	said  []string // what they said to the console
	// refusals are the statuses of pages that are to be refused: a browser writes those to its
	// console, too.
	refusals []int
}

// names are where a Chromium may be installed.
var names = []string{
	"chromium",
	"chromium-browser",
	"google-chrome",
	"google-chrome-stable",
	"chrome",
}

// open starts a browser for pages of the origin, or skips the test.
func open(t *testing.T, origin string) *tab {
	t.Helper()
	path := ""
	for _, name := range names {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	if path == "" {
		t.Skipf("NOT TRIED: no browser is installed; any of %v will do", names)
	}
	options := append(
		chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.WindowSize(1300, 950),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium has none for root
	}
	allocated, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocated)
	b := &tab{t: t, ctx: ctx, origin: origin}
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatalf("the browser does not start: %v", err)
	}
	var listening sync.WaitGroup
	console := chromedp.Console(ctx)
	complaints := chromedp.Events(ctx, log.EntryAdded)
	requests := chromedp.Events(ctx, network.RequestWillBeSent)
	// Who watches keeps nothing of what passes: a page is not slower for being watched.
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{
		MaxTotalBufferSize: new(int64(1)), MaxResourceBufferSize: new(int64(1)),
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	listening.Go(func() {
		for message, err := range console {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.said = append(b.said, fmt.Sprint(message))
			b.mu.Unlock()
		}
	})
	// What the browser itself writes there, such as what the content security policy has kept from
	// happening.
	listening.Go(func() {
		for event, err := range complaints {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.said = append(
				b.said, fmt.Sprint(event.Entry.Level, " ", event.Entry.Text, " ", event.Entry.URL),
			)
			b.mu.Unlock()
		}
	})
	listening.Go(func() {
		for event, err := range requests {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.asked = append(b.asked, event.Request.URL)
			b.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		b.hold()
		cancel()
		stop()
		listening.Wait()
	})
	return b
}

// hold fails the test when a page has asked anybody else, or complained.
func (b *tab) hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, address := range b.asked {
		if !strings.HasPrefix(address, b.origin) && !strings.HasPrefix(address, "data:") &&
			!strings.HasPrefix(address, "about:") {
			b.t.Errorf("a page has asked for %s", address)
		}
	}
	for _, text := range b.said {
		if !slices.ContainsFunc(b.refusals, func(status int) bool {
			return strings.Contains(text, fmt.Sprintf("responded with a status of %d ", status))
		}) {
			b.t.Errorf("the console has %s", text)
		}
	}
}

// expect allows pages to be rejected with a status.
func (b *tab) expect(statuses ...int) { b.refusals = append(b.refusals, statuses...) }

// quiet forgets what the console has: for tests in which the service goes away, which browsers
// write there.
func (b *tab) quiet() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said = nil
}

// chooseIn chooses an option of a select.
func chooseIn(selector, option string) chromedp.Action[chromedp.Void] {
	return chromedp.SendKeys(chromedp.CSS(selector), option)
}

// do takes steps, and fails the test when they do not come to an end in time.
func (b *tab) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 2*time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.shoot("failed")
		b.t.Fatalf("%s: %v", what, err)
	}
}

// eval returns the value of an expression in the page.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 2*time.Minute)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// goTo opens a page, by its path below the origin or its whole address.
func (b *tab) goTo(page string) {
	b.t.Helper()
	if !strings.HasPrefix(page, "http") {
		page = b.origin + page
	}
	b.do("open "+page, chromedp.Navigate(page))
}

// path returns the path of the current page.
func (b *tab) path() string {
	b.t.Helper()
	address, err := url.Parse(eval[string](b, "location.href"))
	if err != nil {
		b.t.Fatal(err)
	}
	return address.Path
}

// await waits until the text of an element has what is wanted.
func (b *tab) await(selector, wanted string) {
	b.t.Helper()
	var text string
	// Not with the page's own clock: the page may have no scripts.
	if !streamstest.Poll(time.Minute, func() bool {
		text = eval[string](
			b, fmt.Sprintf(`document.querySelector(%q)?.textContent ?? ""`, selector),
		)
		return strings.Contains(text, wanted)
	}) {
		b.shoot("failed")
		b.t.Fatalf("%s: got the text %q, want %q", selector, text, wanted)
	}
}

// click presses what a selector finds.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.do("click "+selector, chromedp.Click(chromedp.CSS(selector)))
}

// fill types into an empty field.
func (b *tab) fill(selector, text string) {
	b.t.Helper()
	b.do("fill "+selector, chromedp.SendKeys(chromedp.CSS(selector), text))
}

// press clicks on what leads to another page, and waits for that.
func (b *tab) press(selector string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 2*time.Minute)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS(selector))); err != nil {
		b.shoot("failed")
		b.t.Fatalf("press %s: %v", selector, err)
	}
}

// shoot keeps a screenshot.
func (b *tab) shoot(name string) {
	b.t.Helper()
	folder := filepath.Join(artifacts, "portal", strings.ReplaceAll(b.t.Name(), "/", "-"))
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.MkdirAll(folder, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o644)
	}
	if err != nil {
		b.t.Errorf("screenshot %s: %v", name, err)
	}
}

// check keeps a screenshot of the page and holds the page to what axe-core finds, as it is in light
// and in dark, wide and on a phone.
func (b *tab) check(name string) {
	b.t.Helper()
	b.shoot(name)
	script := axe(b.t)
	if script == "" {
		return
	}
	for scheme, width := range map[string]int64{"light": 1300, "dark": 390} {
		b.do(
			"look at it in "+scheme, chromedp.EmulateViewport(width, 900), prefer(scheme),
			chromedp.Evaluate[chromedp.Void](script+";0"),
		)
		found := eval[string](
			b,
			`axe.run().then((r) => r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.html + " " + n.failureSummary).join("; ")).join("\n"))`,
		)
		if found != "" {
			b.t.Errorf("%s, %s and %d wide: %s", name, scheme, width, found)
		}
		if over := eval[int](b, "document.documentElement.scrollWidth - "+
			"document.documentElement.clientWidth"); over > 0 {
			b.shoot(name + "-too-wide")
			b.t.Errorf("%s, %s and %d wide: it is %d too wide", name, scheme, width, over)
		}
		if scheme == "dark" {
			b.shoot(name + "-dark")
		}
	}
	b.do("as it was", chromedp.ResetViewport(), prefer("light"))
}
