package browser

import (
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"hubcloud/test/harness"
)

// TestPeople invites a person, who accepts in a second browser, becomes an admin, and is removed.
// The page open at the removal must stop its live updates.
func TestPeople(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "People")
	org := "/portal/" + p.tenant.Org
	address := "ben@" + p.tenant.Org + ".example.org" // nobody's in another organization
	p.goTo(org + "/members")
	p.fill("#email", address)
	p.press(`form[action$="/invitations"] button`)
	p.await(".notice", "Invitation sent to "+address)
	p.check("members")

	ben := open(t, p.origin)
	ben.expect(404) // once he is removed
	link, err := url.Parse(p.service.For(t).Mails(address, 1)[0].Link())
	harness.Must(t, err)
	ben.goTo(link.Path)
	ben.await("h1", "You have joined")
	ben.check("joined")
	ben.press("main form button") // one mail is enough
	ben.await("#connection", "Live")
	ben.goTo(org + "/keys")
	if eval[bool](ben, `document.querySelector("#label") !== null`) {
		t.Error("the keys page of a member has the form to create keys")
	}

	p.goTo(org + "/members")
	row := `li:has([aria-label="Role of ` + address + `"])`
	p.do("choose the role", chooseIn(row+" select", "admin"))
	p.press(row + " form button")
	p.await(".notice", "Role changed")
	ben.goTo(org + "/keys")
	if !eval[bool](ben, `document.querySelector("#label") !== null`) {
		t.Error("the keys page of an admin lacks the form to create keys")
	}

	ben.goTo(org)
	ben.await("#connection", "Live")
	p.goTo(org + "/members")
	p.press(row + ` a[href$="/remove"]`)
	p.check("remove")
	p.press("main form button")
	p.await(".notice", "Member removed")
	ben.await("#connection", "no longer a member")
	ben.goTo(org)
	ben.await("h1", "not found")
}

// TestKeys creates a key in the portal. The key must work with the API, within its scopes. Once it
// is revoked, requests with it must fail and its stream must end.
func TestKeys(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "API")
	p.goTo("/portal/" + p.tenant.Org + "/keys")
	p.check("keys")
	p.fill("#label", `<b onclick="alert(1)">Wall panel</b>`)
	p.click(`input[value="hubs:read"]`)
	p.click(`input[value="events:read"]`)
	p.press(`form:has(#label) button`)
	key := eval[string](p.tab, `document.querySelector("#new-key").textContent.trim()`)
	p.check("key-created")
	client := harness.NewClient(t, p.service.Base(), key)
	client.Must(http.MethodGet, "/hubs", nil, http.StatusOK)
	pasted := func(want string) {
		t.Helper()
		command := eval[string](p.tab, `document.querySelector("#new-key-command").textContent`)
		got, err := exec.Command("sh", "-c", command+" --silent --fail").Output()
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("%s: got %s, %v, want %s", command, got, err, want)
		}
	}
	pasted(string(p.hub.ID()))
	client.Rejected(http.MethodGet, "/sites", nil, "insufficient_scope")
	stream := harness.OpenStream(t, client, p.hub.ID(), "")
	// A key that only changes one site has an example too, which leaves the site as it is.
	site := p.tenant.NewSite("Bob's \"north\" & <b>")
	p.goTo("/portal/" + p.tenant.Org + "/keys")
	p.click(`input[value="sites:write"]`)
	p.click(`input[name="site"][value="` + site + `"]`)
	p.press(`form:has(#label) button`)
	pasted(site)
	p.goTo("/portal/" + p.tenant.Org + "/keys")
	p.await(".rows", "Wall panel")
	p.press(`li:has(b > bdi) a[href$="/revoke"]`)
	p.check("revoke")
	p.press("main form button")
	p.await(".notice", "Key revoked")
	client.Rejected(http.MethodGet, "/hubs", nil, "unauthenticated")
	select {
	case <-stream.Ended:
	case <-time.After(time.Minute):
		t.Error("the stream of a revoked key is still open after a minute")
	}
}
