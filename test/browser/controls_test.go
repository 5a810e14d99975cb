package browser

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/test/harness"
)

// TestLateAnswer checks that an answer of the hub that is older than an event does not overwrite
// the event's value. The row of a lock showed the new state, and then the old one for seconds.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "Late answers")
	p.goTo(p.hubPage())
	p.await("#connection", "Live")
	value := channel(1, "lock", ".value")
	p.await(value, "locked")
	p.do("record the values", chromedp.Evaluate[chromedp.Void](fmt.Sprintf(
		`const value = () => document.querySelector(%q).textContent;
		window.shown = [value()];
		setInterval(() => {
			if (shown.at(-1) !== value()) shown.push(value());
		}, 20); 0`, value,
	)))
	report := func(locked bool) {
		t.Helper()
		harness.Must(t, p.hub.Report(1, virtualhub.ChannelRef{Key: "lock"}, locked))
	}
	p.hub.LateAnswers(3 * time.Second)
	report(false)
	p.await(value, "unlocked")
	harness.Elapse(time.Second) // the page has asked the hub, which answers with this state later
	report(true)
	harness.Elapse(4 * time.Second) // the late answer arrives
	p.hub.LateAnswers(0)
	want := []string{"locked", "unlocked", "locked"}
	if got := eval[[]string](p.tab, "window.shown"); !slices.Equal(got, want) {
		t.Errorf("values shown: got %q, want %q", got, want)
	}
}

// TestControls sets a dimmer, a mode and a setpoint.
func TestControls(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "Controls")
	p.goTo(p.hubPage())
	p.await("#connection", "Live")
	submit := func(selector, value string) {
		t.Helper()
		p.do("set "+selector, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(
			`{ const input = document.querySelector(%q); input.value = %q; input.form.requestSubmit(); } 0`,
			selector, value,
		)))
	}

	// The slider went back to the old value while the command was pending, and ended at 99.
	shade := channel(5, "position", "input[type=range]")
	submit(shade, "20")
	p.await(channel(5, "position", ".value"), "20 %")
	submit(shade, "100")
	p.await(channel(5, "position", ".state"), "Setting to 100 %…")
	if got := p.valueOf(shade); got != "100" {
		t.Errorf("slider of a pending command: got %s, want 100", got)
	}
	p.await(channel(5, "position", ".value"), "100 %")

	mode := channel(2, "mode", "select")
	submit(mode, "cool")
	p.await(channel(2, "mode", ".value"), "cool")
	p.click(channel(2, "mode", "details.other summary"))
	p.fill(channel(2, "mode", "details.other input"), "auto")
	p.click(channel(2, "mode", "form > button"))
	p.await(channel(2, "mode", ".value"), "auto")

	setpoint := channel(2, "heating_setpoint", "input[type=number]")
	submit(setpoint, "20.3")
	p.await(channel(2, "heating_setpoint", ".value"), "20.3 °C")
	p.click(channel(2, "heating_setpoint", `button[data-step="0.5"]`))
	if got := p.valueOf(setpoint); got != "21" {
		t.Errorf("setpoint after a step: got %s, want 21", got)
	}
	p.click(channel(2, "heating_setpoint", `button:not([type])`))
	p.await(channel(2, "heating_setpoint", ".value"), "21 °C")
	p.checkIn("controls", `[data-device="2"], [data-device="5"]`)
}
