package browser

import (
	"net/url"
	"testing"

	"hubcloud/test/harness"
)

// openSignup starts a service with open sign-up and an organization, and a browser in which the
// organization's owner is signed in.
func openSignup(t *testing.T, name string) (*tab, *harness.Service, *harness.Tenant) {
	t.Helper()
	target := harness.NewTarget(t, "--rate", "1000", "--burst", "1000", "--open-signup")
	service := target.OwnService()
	tenant := target.Tenant(name)
	b := open(t, service.Public())
	signIn(b, service, tenant.Owner, 1)
	return b, service, tenant
}

// TestForms creates an organization with a right-to-left name, and a site, and sends forms with
// invalid input. Each form must show its problem beside the field.
func TestForms(t *testing.T) {
	t.Parallel()
	b, _, tenant := openSignup(t, "Begin")
	b.expect(400, 422)
	b.goTo("/portal/organizations")
	b.check("organizations")
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
}

// TestUsedLinkIsRejected checks that a used sign-in link signs no one in, and that pages require
// signing in again after signing out.
func TestUsedLinkIsRejected(t *testing.T) {
	t.Parallel()
	b, service, tenant := openSignup(t, "Links")
	sent := service.For(t).Mails(tenant.Owner, 1)
	link, err := url.Parse(signInLink.FindString(sent[0].Text))
	if err != nil {
		t.Fatal(err)
	}
	thief := open(t, service.Public())
	thief.expect(410)
	thief.goTo(link.Path)
	thief.await("h1", "no longer works")
	thief.check("link-over")
	thief.goTo("/portal/" + tenant.Org)
	if thief.path() != "/portal/sign-in" {
		t.Errorf("with a used link: got %s, want the sign-in page", thief.path())
	}
	thief.check("sign-in")
	b.press(".who form button")
	b.await(".notice", "signed out")
	b.goTo("/portal/" + tenant.Org)
	if b.path() != "/portal/sign-in" {
		t.Errorf("after signing out: got %s, want the sign-in page", b.path())
	}
}
