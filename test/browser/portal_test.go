package browser

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"hubcloud/hubbridge/kit/hub"
	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// signIn signs a person in with the link of a mail.
func signIn(b *tab, s *harness.Service, address string) {
	b.t.Helper()
	b.goTo("/portal/sign-in")
	b.signInHere(s, address)
}

// signInHere signs a person in on the page to sign in that is open.
func (b *tab) signInHere(s *harness.Service, address string) {
	b.t.Helper()
	b.goTo(s.For(b.t).SignInLink(address, func() {
		b.fill("#email", address)
		b.press("main form button")
	}))
	b.press("main form button")
}

// portal is a service with an organization and one virtual hub, and a browser in which the owner is
// signed in.
type portal struct {
	*tab
	target  *harness.Target
	service *harness.Service
	tenant  *harness.Tenant
	hub     *virtualhub.Hub
}

// limits leave room for pages that browsers load without a pause, and for new organizations.
var limits = []string{"--rate", "1000", "--burst", "1000", "--open-signup", "--trusted-proxies", "127.0.0.1"}

// shared is the service of the tests that need none of their own.
var shared = harness.Shared{Args: limits}

// networks counts the networks that people come from. One may request 20 sign-in links an hour.
var networks atomic.Uint32

// newPortal returns a portal at a service that other tests use too. Its hub has the demo's devices,
// unless others are given.
func newPortal(t *testing.T, name string, devices ...virtualhub.DeviceSpec) *portal {
	t.Helper()
	return portalOf(t, shared.Target(t), virtualhub.Config{Devices: devices}, name)
}

// slowLock returns the demo's devices with a lock that takes so long that a page shows what it is
// doing, on a busy machine too.
func slowLock(latency time.Duration) []virtualhub.DeviceSpec {
	devices := virtualhub.DemoDevices()
	devices[0].Latency = virtualhub.Duration(latency)
	return devices
}

// newOwnPortal returns a portal at a service that the test may stop.
func newOwnPortal(t *testing.T, cfg virtualhub.Config, name string, args ...string) *portal {
	t.Helper()
	return portalOf(t, harness.NewTarget(t, append(args, limits...)...), cfg, name)
}

func portalOf(
	t *testing.T, target *harness.Target, cfg virtualhub.Config, name string,
) *portal {
	t.Helper()
	service := target.OwnService()
	b := open(t, service.Public())
	if _, err := chromedp.Call(b.ctx, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{
		Headers: network.Headers{"X-Forwarded-For": fmt.Sprintf("10.0.%d.1", networks.Add(1))},
	}); err != nil {
		t.Fatal(err)
	}
	tenant := target.Tenant(name)
	hub := target.VirtualHub(tenant, cfg)
	signIn(b, service, tenant.Owner)
	if want := "/portal/" + tenant.Org; b.path() != want {
		t.Fatalf("page after signing in: got %s, want %s", b.path(), want)
	}
	return &portal{b, target, service, tenant, hub}
}

func (p *portal) hubPage() string {
	return fmt.Sprintf("/portal/%s/hubs/%s", p.tenant.Org, p.hub.ID())
}

// channel returns the selector of a part of a channel on a hub's page.
func channel(device int64, key string, part string) string {
	return fmt.Sprintf(`[data-device="%d"] [data-channel="%s/0"] %s`, device, key, part)
}

// TestLock unlocks a lock: it must be pending, then unlocked. A jammed lock must be shown as
// not locked.
func TestLock(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "Locks", slowLock(4*time.Second)...)
	p.goTo(p.hubPage())
	p.await("#connection", "Live")
	p.await(channel(1, "lock", ".value"), "locked")
	p.click(channel(1, "lock", "summary"))
	p.click(channel(1, "lock", "form button"))
	p.await(channel(1, "lock", ".value"), "unlocked")
	p.await(channel(1, "lock", "summary"), "Lock…")
	p.hub.Jam(1)
	p.click(channel(1, "lock", "summary"))
	p.click(channel(1, "lock", "form button"))
	p.await(channel(1, "lock", ".state"), "Locking…")
	p.await(channel(1, "lock", ".state"), "Not done")
	p.await(channel(1, "lock", ".state"), "Not done: the lock reports unlocked. It may be jammed.")
	p.checkIn("diverged", `[data-device="1"]`)
	p.goTo("/portal/" + p.tenant.Org + "/activity/commands")
	p.await("main li:nth-child(1)", "Front door")
	p.await("main li:nth-child(1) .tag", "Jammed: the device reports unlocked")
	p.await("main li:nth-child(2) .tag", "Done")
	p.check("outcomes")
}

// TestFailedCommand checks that the page shows a command as failed when the hub gave it up, which
// the hub reports in no event, and shows the error when the hub rejects a command.
func TestFailedCommand(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "Radio", slowLock(time.Hour)...)
	p.expect(503)
	p.goTo(p.hubPage())
	p.await("#connection", "Live")
	p.click(channel(1, "lock", "summary"))
	p.click(channel(1, "lock", "form button"))
	p.await(channel(1, "lock", ".state"), "Unlocking…")
	p.hub.RadioDown(true)
	p.await(channel(1, "lock", ".state"), "Failed")
	p.checkIn("failed", `[data-device="1"]`)
	p.click(channel(14, "switch", "button"))
	p.await(channel(14, "switch", ".problem"), "radio")
	p.checkIn("rejected", `[data-device="14"]`)
}

// TestKeyboard turns a switch off with the keyboard only, starting at the skip link.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "Keys")
	p.goTo(p.hubPage())
	p.await("#connection", "Live")
	p.await(channel(14, "switch", ".value"), "on")
	p.do("tab", chromedp.KeyEvent("\t"), chromedp.KeyEvent("\r"))
	button := fmt.Sprintf(`document.querySelector(%q)`, channel(14, "switch", "button"))
	for range 200 {
		p.do("tab", chromedp.KeyEvent("\t"))
		if eval[bool](p.tab, "document.activeElement === "+button) {
			break
		}
	}
	if outline := eval[string](
		p.tab, "getComputedStyle(document.activeElement).outlineStyle",
	); outline != "solid" {
		t.Errorf("outline of the focused button: got %q, want solid", outline)
	}
	p.do("press", chromedp.KeyEvent("\r"))
	p.await(channel(14, "switch", ".value"), "off")
}

// TestHubGoesOffline checks that the dashboard and the hub's page show a hub as offline with the
// reason, and as online when it is back.
func TestHubGoesOffline(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "Offline")
	harness.Must(t, p.hub.Report(2, virtualhub.ChannelRef{Key: "temperature"}, 17.5))
	p.await("#connection", "Live")
	row := fmt.Sprintf(`#sites [data-hub="%s"]`, p.hub.ID())
	p.await(row+" .tag", "online")
	p.hub.Offline(true)
	p.await(row+" .tag", "offline")
	p.await(row+" .reason", "client closed")
	p.await(`[data-count="offline"]`, "1")
	p.await("#events", "hub.disconnected")
	p.goTo(p.hubPage())
	p.await("#devices", "The hub is offline")
	p.await(channel(2, "temperature", ".value"), "17.5")
	if eval[bool](p.tab, `document.querySelector("#devices form.command, #devices .channel:not(.old)") !== null`) {
		t.Error("the devices of an offline hub have controls, or values that look like current ones")
	}
	p.checkIn("offline-hub", "#devices")
	p.showAllEvents()
	p.await("#events", "Device 2")
	p.hub.Offline(false)
	p.await(".live-head .tag", "online")
	p.await(channel(1, "lock", ".value"), "locked")
	streamstest.Eventually(t, "the values are current again", func() bool {
		return eval[bool](p.tab, `document.querySelector("#devices .old") === null`) &&
			eval[bool](p.tab, `document.querySelector("#devices form.command") !== null`)
	})
	// A page that was opened while its hub was offline showed device numbers instead of names for
	// ten minutes after the hub was back.
	p.await("#events", "Hall thermostat")
}

// TestPairing lets a device join while the pairing window counts down. The device must appear
// without reloading the page.
func TestPairing(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "Pairing")
	p.expect(400)
	p.goTo(p.hubPage())
	// When the hub rejected a code, the page lost the typed code.
	p.fill("#setup-code", "1234")
	p.press(`form[action$="/pairing"] button`)
	p.await("#pairing-problem", "must be the PIN")
	p.await("#connection", "Live")
	p.checkIn("pairing-rejected", `form[action$="/pairing"]`)
	// The list was reloaded once: its address then was that of a page less deep.
	address := eval[string](p.tab, `document.getElementById("attention").dataset.address`)
	p.do("mark the list", chromedp.Evaluate[chromedp.Void](
		`document.getElementById("attention").classList.add("old");0`,
	))
	streamstest.Eventually(t, "the list is reloaded", func() bool {
		return eval[bool](p.tab, `!document.getElementById("attention").classList.contains("old")`)
	})
	if reloaded := eval[string](
		p.tab, `document.getElementById("attention").dataset.address`,
	); reloaded != address {
		t.Errorf("address of the reloaded list: got %s, want %s", reloaded, address)
	}
	p.fill("#setup-code", "5")
	p.press(`form[action$="/pairing"] button`)
	p.await(`[data-window="pairing"] .countdown`, " s")
	p.await("#connection", "Live")
	p.checkIn("pairing", `[data-window="pairing"]`)
	id, err := p.hub.Join(virtualhub.DeviceSpec{Kind: "lock", Name: "<script>alert(1)</script>"})
	harness.Must(t, err)
	p.await(fmt.Sprintf(`[data-device="%d"] h3`, id), "<script>alert(1)</script>")
	p.await(`[data-window="pairing"]`, "has joined as device")
	// The window was part of the address, so the reloaded page showed it as still open.
	p.goTo(eval[string](p.tab, "location.href"))
	if eval[bool](p.tab, `document.querySelector('[data-window="pairing"]') !== null`) {
		t.Error("the reloaded page shows a pairing window, want none")
	}
	p.goTo(fmt.Sprintf("%s/devices/%d", p.hubPage(), id))
	p.retype("#name", "Cellar door")
	p.fill("#room", "مرحبا")
	p.press(`form[action$="/label"] button`)
	p.await("h1", "Cellar door")
	p.await(".notice", "Device saved.")
	p.goTo(p.hubPage())
	p.await(fmt.Sprintf(`.room:has([data-device="%d"]) h2`, id), "مرحبا")
	p.goTo(fmt.Sprintf("%s/devices/%d", p.hubPage(), id))
	p.retype("#name", "Celar door")
	p.press(`form[action$="/label"] button`)
	p.await(".notice.undo button", "Undo")
	p.checkIn("undo", ".notice.undo")
	p.press(".notice.undo button")
	p.await(".notice", "Undone.")
	p.await("h1", "Cellar door")
}

// TestEventList pauses and filters the list of events.
func TestEventList(t *testing.T) {
	t.Parallel()
	// The hub sends malformed events on purpose.
	p := portalOf(
		t, shared.Target(t),
		virtualhub.Config{Config: hub.Config{OnMessage: harness.Unchecked}}, "Events",
	)
	p.await("#connection", "Live")
	p.showAllEvents()
	report := func(value float64) {
		harness.Must(t, p.hub.Report(2, virtualhub.ChannelRef{Key: "temperature"}, value))
	}
	if _, err := p.hub.EmitMalformed(); err != nil {
		t.Fatal(err)
	}
	const hostile = "<img src=x onerror=alert(1)>"
	if _, err := p.hub.Emit(virtualhub.Event{
		Type: "custom." + hostile, DeviceID: 2, Data: map[string]string{"html": hostile},
	}); err != nil {
		t.Fatal(err)
	}
	p.await("#events", hostile)
	report(17.5)
	p.await("#events", "Temperature 17.5")
	if eval[bool](p.tab, `document.querySelector("#events img") !== null`) {
		t.Error("HTML from a hub's event became part of the page")
	}
	p.click("#pause")
	report(18.5)
	p.await("#pause", "1 new")
	text := eval[string](p.tab, `document.querySelector("#events").textContent`)
	if strings.Contains(text, "18.5") {
		t.Error("the paused list shows a new event")
	}
	p.click("#pause")
	p.await("#events", "Temperature 18.5")
	p.fill("#filter-device", "9999")
	p.await("#events", "")
	if n := eval[int](p.tab, `document.querySelector("#events").childElementCount`); n != 0 {
		t.Errorf("events of an unknown device: got %d, want 0", n)
	}
	p.fill("#filter-device", "\b\b\b\b")
	p.await("#events", "Temperature 18.5")
}
