package browser

import (
	"testing"

	"hubcloud/test/harness"
)

// TestDoorCodes sets a code for some times of the week, which becomes active on the page
// without a reload. A code that was set at the lock is listed, and what is typed for the next code is
// kept meanwhile.
func TestDoorCodes(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "Codes")
	harness.Must(t, p.hub.SetOwnCode(1, 7, "4711"))
	harness.Stored(t, p.hub)
	p.goTo("/portal/" + p.tenant.Org + "/codes")
	const form = `[aria-labelledby="add"] `
	p.fill("#label", "Cleaner")
	p.click(form + "summary")
	p.click(form + `[name="days-0"][value="mon"]`)
	eval[int](p.tab, `document.querySelector('[name="opens-0"]').value = "08:00"; 0`)
	eval[int](p.tab, `document.querySelector('[name="closes-0"]').value = "10:00"; 0`)
	p.click(form + `[name="door"]`)
	p.hub.Offline(true)
	p.press(form + "form > button")
	p.await("tbody", "Mon 08:00–10:00")
	p.await("[data-code]", "waits for the lock")
	p.check("code-new")
	p.hub.Offline(false)
	p.await("[data-code]", "active")
	p.await("#announcer", "Cleaner, Front door: active")

	p.fill("#label", "Ann")
	p.press(`.selection [name="ask"]`)
	p.await("tbody", "Set at the lock code 7")
	if typed := eval[string](p.tab, `document.getElementById("label").value`); typed != "Ann" {
		t.Errorf("a form that was not sent has %q, want what was typed", typed)
	}
	p.check("codes")
}
