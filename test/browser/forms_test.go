package browser

import (
	"testing"
)

// TestForms creates an organization with a right-to-left name, and a site, and sends forms with
// invalid input. Each form must show its problem beside the field. After signing out, pages require
// signing in again, which a used link does not do.
func TestForms(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "Begin")
	b, tenant := p.tab, p.tenant
	b.expect(400, 410, 422)
	b.goTo("/portal/organizations")
	b.press("main a.button")
	b.fill("#name", "شركة المباني")
	b.check("organization-new")
	b.press("main form button")
	b.await(".notice", "Organization created")
	b.await(".empty", "No sites yet")
	b.fill("#site-name", "Mill")
	b.press(`[aria-labelledby="add-site"] button`)
	b.await(".notice", "Site created")
	b.await("#no-scan", "type the serial") // this browser reads no QR codes
	b.fill("#serial", "HUB-7K2M-Q4XD-93TA")
	b.fill("#site-name", "Barn")
	b.press(`[aria-labelledby="add-site"] button`)
	b.await(".notice", "Site created") // what was typed in the other form is kept
	eval[int](b, `document.querySelector("#site").selectedIndex = 1`)
	b.press(`[aria-labelledby="add-hub"] button`)
	b.await("#hub-problem", "no hub has that serial")
	b.check("hub-rejected")
	b.press(`nav a:first-child`)
	b.await("#first-steps", "First steps")
	if done := eval[int](b, `document.querySelectorAll("[aria-labelledby=first-steps] .good").length`); done != 1 {
		t.Errorf("first steps of an organization with a site: got %d done, want 1", done)
	}
	b.check("first-steps")
	b.press(`nav a[href$="/events"]`)
	b.await(".empty", "No events yet")
	b.check("events")
	b.press(`.tabs a[href$="/activity"]`)
	b.await("main", "created the site")
	b.check("activity")
	b.press(`.tabs a[href$="/commands"]`)
	b.await(".empty", "No commands in the last 24 hours")
	b.check("commands")

	b.goTo("/portal/" + tenant.Org + "/members")
	b.fill("#email", "no address")
	b.press(`[aria-labelledby="invitations"] .fields button`)
	b.await(".problem", "Enter a valid email address.")
	b.check("invitation-rejected")
	b.goTo("/portal/" + tenant.Org + "/keys")
	b.press("form:has(fieldset) > button")
	b.await(".problem", "at least one scope")
	b.check("key-rejected")

	b.press(".who form button")
	b.await(".notice", "signed out")
	b.goTo("/portal/" + tenant.Org)
	if b.path() != "/portal/sign-in" {
		t.Errorf("after signing out: got %s, want the sign-in page", b.path())
	}
	b.check("sign-in")
	b.goTo(p.service.For(t).SignInLinks(tenant.Owner, 1)[0])
	b.await("h1", "no longer works")
	b.check("link-over")
}
