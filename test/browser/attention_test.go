package browser

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
)

// report makes the hub report a value of a channel of a device.
func (p *portal) report(device int64, key string, value any) {
	p.t.Helper()
	streamstest.Must(p.t, p.hub.Report(device, virtualhub.ChannelRef{Key: key}, value))
}

// TestSmokeWhileAnotherPageIsOpen: an alarm appears on the open dashboard with its place and what
// to do, stays while the hub is offline, and steps back when it has been seen.
func TestSmokeWhileAnotherPageIsOpen(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "Smoke")
	p.await("#connection", "Live")
	p.await("#attention", "Nothing needs attention.")
	p.report(12, "smoke", true)
	p.await("#attention", "Smoke detected")
	p.await("#attention .condition", "call the fire brigade")
	p.awaitTitle("(1 alarm) Overview")
	p.report(7, "battery", 3)
	p.await("#attention", "Low battery (3 %)")
	p.awaitTitle("(1 alarm, 1 warning) Overview")
	p.checkIn("alarm", "#attention")
	p.goTo(p.hubPage())
	p.await("#attention", "Smoke detected")
	p.goTo("/portal/" + p.tenant.Org + "/members") // a page without a list
	p.await("nav .badge", "1 alarm, 1 warning")
	p.awaitTitle("(1 alarm, 1 warning) People")
	p.await("#danger", "Smoke detected")
	p.checkIn("danger", "#danger")
	p.expect(404)
	for _, outside := range []string{
		"organizations", "organizations/nothing", p.tenant.Org + "/hubs/none",
	} {
		p.goTo("/portal/" + outside)
		p.await("#danger", "Smoke detected Smoke › ")
		p.checkIn("danger-outside", "#danger")
	}
	p.goTo("/portal/" + p.tenant.Org + "/members")
	p.await("#danger", "Smoke detected") // the first look: what it finds is not new
	p.report(7, "leak", true)
	p.await("#new-alarm", "leak")
	p.checkIn("new-alarm", "#new-alarm")
	p.report(7, "leak", false)
	p.goTo("/portal/" + p.tenant.Org)
	p.hub.Offline(true)
	p.await("#attention", "Hub offline")
	p.await("#attention", "last reported; the hub went offline")
	p.check("offline")
	p.hub.Offline(false)
	p.await("#connection", "Live")
	p.awaitTitle("(1 alarm, 1 warning) Overview")
	p.click(`[data-condition*=" smoke/"] button`)
	p.awaitTitle("(1 warning) Overview")
	p.await("#attention .seen .condition", "Seen by "+p.tenant.Owner)
	p.do("wait until the banner has gone", chromedp.WaitNotPresent("#danger"))
	p.checkIn("seen", "#attention")
	p.click("#attention .seen button") // undo
	p.await("#danger", "Smoke detected")
	p.awaitTitle("(1 alarm, 1 warning) Overview")
	p.click("#danger button") // the page stays
	p.do("wait until the banner has gone", chromedp.WaitNotPresent("#danger"))
	p.await("#attention .seen .condition", "Seen by "+p.tenant.Owner)
	p.report(12, "smoke", false)
	p.await("#attention h2", "Needs attention 1 warning")
	p.report(12, "smoke", true)
	p.awaitTitle("(1 alarm, 1 warning) Overview")
}

// TestJamNeedsAttention: a lock that does not lock is an alarm on its hub's page until it locks.
func TestJamNeedsAttention(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "Jam")
	p.goTo(p.hubPage())
	p.await("#connection", "Live")
	p.hub.Jam(1)
	p.await(channel(1, "lock", ".value"), "locked")
	p.click(channel(1, "lock", "summary"))
	p.click(channel(1, "lock", "form button"))
	p.await("#attention", "Jammed")
	p.awaitTitle("(1 alarm) ")
	p.checkIn("jam", `#attention, [data-device="1"]`)
}

// TestLockTheWholeSite: the page of the action lists the locks with their states, locks them, and
// shows a result for each. It said "Done" for a door that had reported that it is locked before the
// command, and that it is open after it.
func TestLockTheWholeSite(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "North")
	p.press(`#sites h2 a`)
	p.check("site")
	p.press(`a[href$="/actions/lock"]`)
	p.await(".targets li:nth-child(1)", "Front door")
	p.await(".targets li:nth-child(1) .state", "locked")
	p.await(".targets li:nth-child(2) .state", "unlocked")
	p.check("confirm")
	p.hub.Jam(1)
	p.press(`main form[method="post"] button`)
	p.await(".targets li:nth-child(1) .tag", "the device reports unlocked")
	p.await("main [role=status]", "0 done, 2 failed of 2.")
	p.check("results")
	p.hub.Unjam(1)
	p.press(`main a[href$="/actions/lock"]`)
	p.press(`main form[method="post"] button`)
	p.await(".targets li:nth-child(1)", "Rejected") // what failed is listed first
	p.await(".targets li:nth-child(2)", "Done")
	p.goTo("/portal/" + p.tenant.Org + "/settings")
	p.check("settings")
	p.goTo(p.hubPage() + "/remove")
	p.check("remove")
	p.press(`main form[method="post"] button`)
	p.await(".notice", "Hub removed from the organization.")
}

// awaitTitle waits until the page's title contains wanted.
func (b *tab) awaitTitle(wanted string) {
	b.t.Helper()
	title := ""
	if !streamstest.Poll(time.Minute, func() bool {
		title = strings.NewReplacer("\u2068", "", "\u2069", "").Replace(
			eval[string](b, "document.title"),
		)
		return strings.Contains(title, wanted)
	}) {
		b.shoot("failed")
		b.t.Fatalf("got the title %q, want %q", title, wanted)
	}
}
