package browser

import (
	"testing"
	"time"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

const (
	// longestReturn is how long a page may take to be live after the service answers again.
	longestReturn = 3 * time.Second
	// longestPause is more than the longest pause between two attempts of a page to return.
	longestPause = 20 * time.Second
)

// TestOutage stops the service while the page of a hub is open. The page must say since when its
// values are old, keep what is typed and what is submitted, and be back soon after the service.
func TestOutage(t *testing.T) {
	t.Parallel()
	p := newOwnPortal(t, virtualhub.Config{}, "Outage")
	p.goTo(p.hubPage())
	p.await("#connection", "Live")
	p.await(channel(1, "lock", ".value"), "locked")
	p.service.Stop()
	p.await("#outage", "Connection lost. Values as of ")
	p.await("#outage button", "Try now")
	disabled := `document.querySelector("form.command button").disabled`
	if !eval[bool](p.tab, disabled) {
		t.Error("a command can be sent during the outage")
	}
	p.check("outage")
	p.fill("#setup-code", "12345")
	p.click(`form[action$="/pairing"] button`)
	p.await(`form[action$="/pairing"] .not-sent`, "What you typed is kept.")
	p.click(".not-sent button")
	p.await(`form[action$="/pairing"] .not-sent`, "What you typed is kept.")
	p.checkIn("not-sent", `form[action$="/pairing"]`)
	took := p.backAfter(longestPause)
	for range 2 { // a busy machine may be late once
		if took <= longestReturn {
			break
		}
		p.await("#connection", "Live")
		p.service.Stop()
		p.await("#outage", "Connection lost. Values as of ")
		took = p.backAfter(longestPause)
	}
	if took > longestReturn {
		t.Errorf("the page was back after %s, want at most %s", took, longestReturn)
	}
	p.await("#connection", "Live")
	if eval[bool](p.tab, disabled) {
		t.Error("commands cannot be sent after the outage")
	}
	p.await(channel(1, "lock", ".value"), "locked")
	p.press(".not-sent button")
	// The hub may be back later than the page. The rejected form keeps the code.
	opened := `document.querySelector('[data-window="pairing"] .countdown') !== null`
	if !streamstest.Poll(time.Minute, func() bool {
		if eval[bool](p.tab, opened) {
			return true
		}
		p.press(`form[action$="/pairing"] button`)
		return false
	}) {
		p.shoot("failed")
		t.Error("pairing is not open a minute after the outage")
	}
	p.goTo("/portal/" + p.tenant.Org + "/sites") // a page that is not live says it too
	p.service.Stop()
	p.await("#outage", "Connection lost. Values as of ")
	p.backAfter(0)
	p.clearConsole() // failed connections are written there
}

// backAfter starts the service after a pause. It returns how long the page then took to be back.
func (p *portal) backAfter(pause time.Duration) time.Duration {
	p.t.Helper()
	harness.Elapse(pause)
	p.service.Begin()
	begun := time.Now()
	for eval[bool](p.tab, `document.getElementById("outage") !== null`) {
		if time.Since(begun) > time.Minute {
			p.shoot("failed")
			p.t.Fatal("the page is not back a minute after the service")
		}
		harness.Elapse(20 * time.Millisecond)
	}
	took := time.Since(begun)
	p.t.Logf("the page was back %s after the service", took.Round(10*time.Millisecond))
	return took
}
