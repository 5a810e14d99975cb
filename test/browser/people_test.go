package browser

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"hubcloud/test/harness"
)

// office is a service with an organization, and a browser in which its owner is signed in.
func office(t *testing.T, name string) (*tab, *harness.Service, *harness.Tenant) {
	t.Helper()
	target := harness.NewTarget(t, "--rate", "1000", "--burst", "1000", "--open-signup")
	service := target.Own()
	tenant := target.Tenant(name)
	b := open(t, service.Public())
	signIn(b, service, tenant.Owner, 1)
	return b, service, tenant
}

func (b *tab) count(selector string) int {
	return eval[int](b, fmt.Sprintf("document.querySelectorAll(%q).length", selector))
}

// TestKeys: a key that is made here works with the API, is shown once, and stops when it is revoked.
func TestKeys(t *testing.T) {
	t.Parallel()
	b, service, tenant := office(t, "Keyring")
	b.expect(400)
	page := "/portal/" + tenant.Org + "/keys"
	b.goTo(page)
	b.press(`form[method=post] fieldset ~ button`)
	b.await(".problem", "at least one scope")
	b.check("keys-refused")
	b.fill("#label", "<script>alert(1)</script>")
	b.click(`input[value="sites:read"]`)
	b.press(`form[method=post] fieldset ~ button`)
	b.check("key-created")
	key := eval[string](b, `document.querySelector("#new-key").textContent`)
	client := harness.NewClient(t, service.Base(), key)
	client.Must("GET", "/sites", nil, 200)
	client.Refused("GET", "/members", nil, 403, "insufficient_scope")
	b.goTo(page)
	if strings.Contains(eval[string](b, "document.body.textContent"), key) {
		t.Error("the key is shown again")
	}
	b.await("tbody tr", "<script>alert(1)</script>")
	b.await("tbody tr time", "")
	b.press(`tbody tr:first-child a`)
	b.check("key-revoke")
	b.press("button.danger")
	b.await(".notice", "revoked")
	client.Refused("GET", "/sites", nil, 401, "unauthenticated")
}

// TestInvitation: somebody who is invited joins from another browser, signs in, is made an admin, and is out at once when removed.
func TestInvitation(t *testing.T) {
	t.Parallel()
	b, service, tenant := office(t, "Guests")
	b.expect(400)
	page := "/portal/" + tenant.Org + "/members"
	b.goTo(page)
	b.fill("#email", "no address")
	b.press("section:last-of-type .fields button")
	b.await(".problem", "no e-mail address")
	b.check("invitation-refused")
	b.goTo(page)
	b.fill("#email", "ann@example.org")
	b.press("section:last-of-type .fields button")
	b.await(".notice", "on its way")
	b.check("members")

	ann := open(t, service.Public())
	ann.expect(404)
	link, err := url.Parse(service.For(t).Mails("ann@example.org", 1)[0].Link())
	if err != nil {
		t.Fatal(err)
	}
	ann.goTo(link.Path)
	ann.await("h1", "You have joined")
	ann.check("joined")
	signIn(ann, service, "ann@example.org", 2)
	if want := "/portal/" + tenant.Org; ann.path() != want {
		t.Errorf("signed in at %s", ann.path())
	}
	ann.goTo(page)
	if ann.count("select") != 0 {
		t.Error("a member may change roles")
	}
	ann.check("members-of-member")

	b.goTo(page)
	b.do("choose", chromedp.SetValue(`select[aria-label="Role of ann@example.org"]`, "admin"))
	b.press("tbody tr:nth-child(2) form button")
	b.await(".notice", "role is changed")
	ann.goTo(page)
	if ann.count("select") == 0 {
		t.Error("an admin may not change roles")
	}
	ann.goTo("/portal/" + tenant.Org)
	ann.await("#connection", "Live")
	b.press("tbody tr:nth-child(2) td:last-child a")
	b.check("member-remove")
	b.press("button.danger")
	b.await(".notice", "removed")
	ann.goTo(page)
	ann.await("h1", "nothing here")
	ann.goTo("/portal/organizations")
	ann.await(".empty", "no organization yet")
	ann.check("no-organization")
}

// TestLinkIsStolen: a link that was used signs nobody in, and a cookie of another installation is none.
func TestLinkIsStolen(t *testing.T) {
	t.Parallel()
	b, service, tenant := office(t, "Links")
	sent := service.For(t).Mails(tenant.Owner, 1)
	link, err := url.Parse(signInLink.FindString(sent[0].Text))
	if err != nil {
		t.Fatal(err)
	}
	thief := open(t, service.Public())
	thief.expect(410)
	thief.goTo(link.Path)
	thief.await("h1", "does not work any more")
	thief.check("link-over")
	thief.goTo("/portal/" + tenant.Org)
	if thief.path() != "/portal/sign-in" {
		t.Errorf("the thief is at %s", thief.path())
	}
	thief.check("sign-in")
	b.press("header .who button")
	b.await(".notice", "signed out")
	b.goTo("/portal/" + tenant.Org)
	if b.path() != "/portal/sign-in" {
		t.Errorf("after signing out at %s", b.path())
	}
}

// TestOffice: an organization is begun, with a name that is written from right to left, a site and the reason why a hub cannot be added.
func TestOffice(t *testing.T) {
	t.Parallel()
	b, _, _ := office(t, "Begin")
	b.expect(422)
	b.goTo("/portal/organizations")
	b.check("organizations")
	b.press("main a.button")
	b.fill("#name", "شركة المباني")
	b.check("organization-new")
	b.press("main form button")
	b.await(".notice", "organization is ready")
	b.await(".empty", "no sites yet")
	b.fill("#site-name", "Mill")
	b.press("section:last-of-type button")
	b.await(".notice", "site is there")
	b.fill("#serial", "HUB-7K2M-Q4XD-93TA")
	b.press(`[aria-labelledby="add-hub"] button`)
	b.await("#serial-problem", "no hub has that serial")
	b.check("hub-refused")
	b.press(`nav a[href$="/activity"]`)
	b.await("main", "created the site")
	b.check("activity")
}
