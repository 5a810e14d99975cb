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

// artifacts is the folder of the screenshots, which git ignores.
const artifacts = "../artifacts"

// tab is a browser tab with its own profile.
type tab struct {
	t *testing.T
	// ctx identifies the tab to chromedp, which keeps the state of a tab in a context: there is no
	// other handle to store.
	ctx    context.Context
	origin string

	mu        sync.Mutex
	requested []string // URLs that pages requested
	console   []string // messages that pages and the browser wrote
	// expected are the error statuses that the test expects. The browser writes them to the
	// console.
	expected []int
}

// programs are the names under which Chromium may be installed.
var programs = []string{
	"chromium",
	"chromium-browser",
	"google-chrome",
	"google-chrome-stable",
	"chrome",
}

// chromium returns the path of the browser, or skips the test.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range programs {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	t.Skipf("NOT TRIED: no browser is installed; want one of %v", programs)
	return ""
}

// browser is Chromium, which all tests share, once a test has started it.
var browser struct {
	start sync.Once
	ctx   context.Context
	err   error
	stop  func()
}

// startBrowser starts browser, or skips the test.
func startBrowser(t *testing.T) {
	t.Helper()
	path := chromium(t)
	browser.start.Do(func() {
		options := append(
			chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
			chromedp.WindowSize(1300, 950), chromedp.DisableGPU,
			// No process is started for a page that may come next, and none is kept for one to go back to.
			chromedp.Flag("disable-features", "Translate,SpareRendererForSitePerProcess,BackForwardCache"),
		)
		if os.Geteuid() == 0 {
			options = append(options, chromedp.NoSandbox) // Chromium has no sandbox for root
		}
		allocated, stop := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, cancel := chromedp.NewContext(allocated)
		browser.ctx, browser.err = ctx, chromedp.Do(ctx)
		browser.stop = func() {
			cancel()
			stop()
		}
	})
	if browser.err != nil {
		t.Fatalf("the browser does not start: %v", browser.err)
	}
}

// open opens a tab for pages of the origin, or skips the test.
func open(t *testing.T, origin string) *tab {
	t.Helper()
	startBrowser(t)
	ctx, cancel := chromedp.NewContext(browser.ctx, chromedp.WithNewBrowserContext())
	b := &tab{t: t, ctx: ctx, origin: origin}
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatalf("the browser opens no tab: %v", err)
	}
	var listening sync.WaitGroup
	messages := chromedp.Console(ctx)
	entries := chromedp.Events(ctx, log.EntryAdded)
	requests := chromedp.Events(ctx, network.RequestWillBeSent)
	// Response bodies are not kept: that would slow pages down.
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{
		MaxTotalBufferSize: new(int64(1)), MaxResourceBufferSize: new(int64(1)),
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	listening.Go(func() {
		for message, err := range messages {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.console = append(b.console, fmt.Sprint(message))
			b.mu.Unlock()
		}
	})
	// Messages of the browser itself, such as violations of the content security policy.
	listening.Go(func() {
		for event, err := range entries {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.console = append(
				b.console,
				fmt.Sprint(event.Entry.Level, " ", event.Entry.Text, " ", event.Entry.URL),
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
			b.requested = append(b.requested, event.Request.URL)
			b.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		b.checkTraffic()
		cancel()
		listening.Wait()
	})
	return b
}

// checkTraffic fails the test if a page requested another origin or wrote to the console.
func (b *tab) checkTraffic() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, address := range b.requested {
		if !strings.HasPrefix(address, b.origin) && !strings.HasPrefix(address, "data:") &&
			!strings.HasPrefix(address, "about:") {
			b.t.Errorf("a page requested %s, want only %s", address, b.origin)
		}
	}
	for _, text := range b.console {
		// On a slow machine a test presses a button before the browser comes to the page's autofocus.
		if strings.Contains(text, "Autofocus processing was blocked") {
			continue
		}
		if !slices.ContainsFunc(b.expected, func(status int) bool {
			return strings.Contains(text, fmt.Sprintf("responded with a status of %d ", status))
		}) {
			b.t.Errorf("console: got %s, want nothing", text)
		}
	}
}

// expect allows answers with the given error statuses.
func (b *tab) expect(statuses ...int) { b.expected = append(b.expected, statuses...) }

// clearConsole discards the messages in the console.
func (b *tab) clearConsole() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.console = nil
}

// chooseIn returns the action that chooses an option of a select.
func chooseIn(selector, option string) chromedp.Action[chromedp.Void] {
	return chromedp.SendKeys(chromedp.CSS(selector), option)
}

// do runs actions. It fails the test if one fails or they take more than two minutes.
func (b *tab) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 2*time.Minute)
	defer cancel()
	err := chromedp.Do(ctx, actions...)
	for err != nil && strings.Contains(err.Error(), "Could not find node with given id") {
		err = chromedp.Do(ctx, actions...) // a live update has replaced the element meanwhile
	}
	if err != nil {
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

// goTo opens a page, given by its path or its URL.
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
	streamstest.Must(b.t, err)
	return address.Path
}

// await waits until the text of an element contains wanted.
func (b *tab) await(selector, wanted string) {
	b.t.Helper()
	var text string
	// The page cannot wait itself: its scripts may be disabled.
	if !streamstest.Poll(3*time.Minute, func() bool {
		text = eval[string](
			b, fmt.Sprintf(`document.querySelector(%q)?.textContent ?? ""`, selector),
		)
		return strings.Contains(text, wanted)
	}) {
		b.shoot("failed")
		b.t.Fatalf("%s: got the text %q, want %q", selector, text, wanted)
	}
}

// choose sets a select to the option with that value.
func (b *tab) choose(selector, value string) {
	b.t.Helper()
	b.do("choose in "+selector, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(
		`{ const choice = document.querySelector(%q); choice.value = %q;
		choice.dispatchEvent(new Event("input", { bubbles: true })) };0`, selector, value,
	)))
}

// showAllEvents shows the routine events too in the page's list of live events.
func (b *tab) showAllEvents() {
	b.t.Helper()
	b.choose("#filter-severity", "0")
}

// click clicks an element.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.settle(selector)
	b.do("click "+selector, chromedp.Click(chromedp.CSS(selector)))
}

// settle waits until an element has stood at its place for two looks: a click goes to the place
// where an element was, and misses it where the page still scrolls, as on a busy machine.
func (b *tab) settle(selector string) {
	b.t.Helper()
	_, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](fmt.Sprintf(`(async () => {
		for (let looks = 0, last = ""; looks < 100; looks++) {
			const element = document.querySelector(%q);
			element?.scrollIntoView({ block: "nearest" });
			const { x, y } = element?.getBoundingClientRect() ?? {};
			if (last === x + " " + y) return true;
			last = x + " " + y;
			await new Promise((looked) => setTimeout(looked, 50));
		}
		return false;
	})()`, selector), chromedp.EvalAwaitPromise))
	if err != nil { // the page was left meanwhile: the click waits for the next one
		b.t.Logf("settle %s: %v", selector, err)
	}
}

// fill types text into an empty field.
func (b *tab) fill(selector, text string) {
	b.t.Helper()
	b.do("fill "+selector, chromedp.SendKeys(chromedp.CSS(selector), text))
}

// retype replaces what is typed in a field, as a person does: chromedp.Clear only changes the
// field's default value, which shows nothing once something has been typed.
func (b *tab) retype(selector, text string) {
	b.t.Helper()
	b.do("focus "+selector, chromedp.Focus(chromedp.CSS(selector)))
	b.do(
		"select what is typed",
		chromedp.Evaluate[chromedp.Void](`document.activeElement.select(); 0`),
	)
	b.fill(selector, text)
}

// press clicks an element that opens another page, and waits for that page.
func (b *tab) press(selector string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 2*time.Minute)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS(selector))); err != nil {
		b.shoot("failed")
		b.t.Fatalf("press %s: %v", selector, err)
	}
}

// shoot saves a screenshot.
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

// check fails the test if axe-core finds a violation or the page is wider than the window, in a wide
// window with light colors and on a phone with dark ones. It saves screenshots if the environment
// variable screenshotsVariable is set.
func (b *tab) check(name string) {
	b.t.Helper()
	b.checkIn(name, "html")
}

// byLook are the rules of axe-core whose result depends on colors and width.
const byLook = `, runOnly: ["button-name", "color-contrast", "link-in-text-block", "link-name",
	"scrollable-region-focusable", "summary-name"]`

// checkIn is check for a part of a page, which saves seconds on a long page that another check sees.
func (b *tab) checkIn(name, selector string) {
	b.t.Helper()
	script := axe(b.t)
	if script == "" {
		return
	}
	for _, look := range []struct {
		scheme string
		width  int64
		rules  string
	}{{"light", 1300, ""}, {"dark", 390, byLook}} {
		b.do("show the page in "+look.scheme, chromedp.EmulateViewport(look.width, 900), prefer(look.scheme))
		if !eval[bool](b, `"axe" in window`) {
			b.do("load axe-core", chromedp.Evaluate[chromedp.Void](script+";0"))
		}
		found := eval[string](
			b, fmt.Sprintf("axe.run(%q, ", selector)+
				`{selectors: false, resultTypes: ["violations"]`+look.rules+
				`}).then((r) => r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.html + " " + n.failureSummary).join("; ")).join("\n"))`,
		)
		if found != "" {
			b.t.Errorf("%s, %s, width %d: axe-core found: %s", name, look.scheme, look.width, found)
		}
		over := eval[int](b, "document.documentElement.scrollWidth - document.documentElement.clientWidth")
		if over > 0 {
			b.t.Errorf("%s, %s, width %d: the page is %d pixels too wide", name, look.scheme, look.width, over)
		}
		if found != "" || over > 0 || os.Getenv(screenshotsVariable) != "" {
			b.shoot(name + "-" + look.scheme)
		}
	}
	b.do("restore the window", chromedp.EmulateViewport(1300, 950), prefer("light"))
}
