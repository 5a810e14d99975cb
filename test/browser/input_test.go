package browser

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// valueOf returns the value of an input field.
func (b *tab) valueOf(selector string) string {
	b.t.Helper()
	return eval[string](b, fmt.Sprintf("document.querySelector(%q).value", selector))
}

// TestLiveUpdatesKeepInput checks that live updates of a page keep typed input and the focus.
func TestLiveUpdatesKeepInput(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "Input")
	p.expect(503, 504)
	p.goTo(p.hubPage())
	p.await("#connection", "Live")

	// A report of the channel discarded typed input once the focus had moved to the button.
	field := channel(2, "heating_setpoint", "input[type=number]")
	p.retype(field, "24.5")
	p.do("move the focus", chromedp.KeyEvent("\t"))
	harness.Must(t, p.hub.Report(2, virtualhub.ChannelRef{Key: "heating_setpoint"}, 18.0))
	p.await(channel(2, "heating_setpoint", ".value"), "18 °C")
	harness.Elapse(time.Second) // soon after a report the page requests the device
	if got := p.valueOf(field); got != "24.5" {
		t.Errorf("input after a report: got %q, want 24.5", got)
	}
	p.do("send", chromedp.KeyEvent("\r"))
	p.await(channel(2, "heating_setpoint", ".value"), "24.5 °C")

	// A device that joined replaced the whole list, and with it typed input and the focus.
	p.retype(field, "25.5")
	if _, err := p.hub.Join(virtualhub.DeviceSpec{
		Kind: "switch", Name: strings.Repeat("ABCDEFGHIJ", 20),
	}); err == nil {
		t.Fatal("a device joined without a pairing window")
	}
	p.do(
		"pair",
		chromedp.Evaluate[chromedp.Void](
			fmt.Sprintf(
				`fetch(%q, { method: "POST", body: new URLSearchParams(new FormData(document.querySelector('form[action$="/pairing"]'))) });0`,
				p.hubPage()+"/pairing",
			),
		),
	)
	deadline := time.Now().Add(time.Minute)
	for {
		if _, err := p.hub.Join(virtualhub.DeviceSpec{
			Kind: "switch", Name: strings.Repeat("ABCDEFGHIJ", 20),
		}); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	p.await("#devices", "ABCDEFGHIJ")
	if got := p.valueOf(field); got != "25.5" ||
		!eval[bool](
			p.tab, fmt.Sprintf("document.activeElement === document.querySelector(%q)", field),
		) {
		t.Errorf("after a device joined: got input %q or no focus, want 25.5 with the focus", got)
	}
	p.check("long-name")

	// A hub that disconnected removed the devices from the page, and typed input with them.
	p.hub.Offline(true)
	p.await(".live-head .tag", "offline")
	p.await(".stale", "last known values")
	p.click(channel(14, "switch", "button"))
	p.await(channel(14, "switch", ".problem"), "not connected")
	p.checkIn("stale", "#devices")
	p.hub.Offline(false)
	p.await(".live-head .tag", "online")
	p.await("main", "Front door")
	streamstest.Eventually(t, "the devices are no longer marked as stale", func() bool {
		return eval[bool](p.tab, `document.querySelector(".stale") === null`)
	})
	if got := p.valueOf(field); got != "25.5" {
		t.Errorf("input after the hub was offline: got %q, want 25.5", got)
	}
}

// TestSlowHub opens the page of a hub that answers late. The page waited for the hub, and a second
// click on a button sent a second command.
func TestSlowHub(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "Slow")
	p.hub.LateAnswers(2 * time.Second)
	began := time.Now()
	p.goTo(p.hubPage())
	p.await("#about", "About this hub")
	took := time.Since(began)
	text := eval[string](p.tab, `document.querySelector("#devices").textContent`)
	if !strings.Contains(text, "is slow to answer") {
		t.Errorf("devices after %s: got %q, want \"is slow to answer\"", took, text)
	}
	p.checkIn("slow", "#devices")
	p.await(channel(1, "lock", ".value"), "locked")
	p.await("#connection", "Live")
	p.hub.LateAnswers(5 * time.Second) // half of the time that the service waits for a hub
	// Both actions are offered if the hub was too late to tell the value. Both clicks are one task
	// of the page, so that no answer comes between them.
	p.do("click twice", chromedp.Evaluate[chromedp.Void](fmt.Sprintf(
		`{ const off = document.querySelector(%q); off.click(); off.click(); } 0`,
		channel(14, "switch", `button[value="false"]`),
	)))
	p.await(channel(14, "switch", ".sending:not([hidden])"), "Sending")
	p.hub.LateAnswers(0)
	p.await(channel(14, "switch", ".value"), "off")
	harness.Stored(t, p.hub)
	p.goTo("/portal/" + p.tenant.Org + "/activity/commands")
	if n := eval[int](p.tab, `document.querySelectorAll("main li").length`); n != 1 {
		t.Errorf("two clicks: got %d commands, want 1", n)
	}
}

// TestWithoutScripts checks that without JavaScript every action works as a form, and that the page
// states that it does not update.
func TestWithoutScripts(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "Plain")
	if _, err := chromedp.Call(
		p.ctx, emulation.SetScriptExecutionDisabled,
		emulation.SetScriptExecutionDisabledParams{Value: true},
	); err != nil {
		t.Fatal(err)
	}
	p.goTo(p.hubPage())
	p.await("main", "Live updates need JavaScript")
	p.click(channel(1, "lock", "summary"))
	p.press(channel(1, "lock", "form button"))
	p.await(".notice", "Command sent")
	text := fmt.Sprintf("document.querySelector(%q).textContent", channel(1, "lock", ".value"))
	for !strings.Contains(eval[string](p.tab, text), "unlocked") {
		p.goTo(p.hubPage())
	}
	p.press(`form[action$="/removal"] button`)
	p.await(`[data-window="removal"]`, "closes in 2 minutes")
	p.press(`form[action$="/removal/close"] button`)
	p.await(".notice ~ .notice, .notice", "closed")
	p.hub.LateAnswers(5 * time.Second)
	p.goTo(p.hubPage())
	p.await("#devices", "Wait for its devices")
	p.press(`#devices a[href="?wait"]`)
	p.await(channel(1, "lock", ".value"), "unlocked")
}

// loaded returns how many bytes the browser has loaded for the page, without its stream.
func (b *tab) loaded() int {
	b.t.Helper()
	return eval[int](b,
		`performance.getEntriesByType("resource").concat(performance.getEntriesByType("navigation"))
		.filter((e) => !e.name.endsWith("/stream")).reduce((sum, e) => sum + e.transferSize, 0)`,
	)
}

// maxShift is how far the parts of a page may move while it loads, as browsers measure it
// (Cumulative Layout Shift).
const maxShift = 0.02

// checkShift fails the test if parts of the page have moved too far since it was opened.
func (b *tab) checkShift(name string) {
	b.t.Helper()
	moved := eval[[]string](b, `new Promise((done) => {
		const moves = [];
		new PerformanceObserver((list) => moves.push(...list.getEntries()))
			.observe({ type: "layout-shift", buffered: true });
		setTimeout(() => {
			const shift = moves.filter((m) => !m.hadRecentInput).reduce((sum, m) => sum + m.value, 0);
			done([String(shift), ...moves.flatMap((m) => m.sources.map((s) => s.node?.cloneNode?.()?.outerHTML))]);
		}, 200);
	})`)
	if shift, err := strconv.ParseFloat(moved[0], 64); err != nil || shift > maxShift {
		b.t.Errorf("%s: layout shift: got %s, want at most %v; moved %q", name, moved[0], maxShift, moved[1:])
	}
}
