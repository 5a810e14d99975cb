package portal_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"hubcloud/domain"
)

// A member chooses a name, which the pages show in place of the address.
func TestOwnName(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	b := w.open(t, nil).signIn(max)
	checkPage(t, b.get(inOne+"/settings", http.StatusOK))
	if to, _ := b.post(
		inOne+"/settings/own-name", http.StatusSeeOther, "name", " Max <b>Mill</b> ",
	); to != inOne+"/settings" {
		t.Errorf("redirected to %q, want the settings", to)
	}
	const name = "Max &lt;b&gt;Mill&lt;/b&gt;"
	for _, path := range []string{"/settings", "/members", "/activity"} {
		page := b.get(inOne+path, http.StatusOK)
		has(t, checkPage(t, page), name)
	}
	if _, page := b.post(
		inOne+"/settings/own-name", http.StatusBadRequest, "name", strings.Repeat("x", 201),
	); !strings.Contains(page, `id="own-name-problem"`) {
		t.Errorf("got %s, want the error beside the field", page)
	}
	b.post(inOne+"/settings/own-name", http.StatusSeeOther, "name", "")
	lacks(t, b.get(inOne+"/members", http.StatusOK), name)
}

// A viewer sees every page, and can change and operate nothing. A member without a managing role
// sends commands, and changes nothing else.
func TestViewer(t *testing.T) {
	t.Parallel()
	b := newHubBackend(t)
	email := fmt.Sprintf("max@t%d.example.org", backends.Add(1))
	member := b.NewMember(t, email, domain.RoleMember)
	b.reported = []domain.ReportedState{b.state(3, "Landing", "smoke", "true")}
	device := b.path + "/devices/1"
	actions := []string{"/devices/1/commands", "/attention/seen", "/actions/"}
	pages := []string{b.path, device, "", "/sites/" + b.SiteID, "/members"}
	for _, viewOnly := range []bool{true, false} {
		if viewOnly {
			b.signIn(t, b.Owner.Email)
			b.ask("POST", "/members/"+member.ID+"/role", url.Values{"role": {"viewer"}})
			has(t, b.page(t, "/members"), `<option value="viewer" selected>`)
		} else {
			b.signIn(t, b.Owner.Email)
			b.ask("POST", "/members/"+member.ID+"/role", url.Values{"role": {"member"}})
		}
		b.signIn(t, email)
		var all strings.Builder
		for _, path := range pages {
			page := b.page(t, path)
			checkPage(t, page)
			all.WriteString(page)
		}
		access := map[bool]string{true: "viewer", false: "member"}[viewOnly]
		has(t, b.page(t, "/search?q="+email), ">"+access+"<")
		for _, action := range actions {
			if strings.Contains(all.String(), action) == viewOnly {
				t.Errorf("view only %t: got %s on the pages: %t", viewOnly, action, viewOnly)
			}
		}
		want := http.StatusSeeOther
		if viewOnly {
			want = http.StatusForbidden
		}
		b.want(t, want, "POST", device+"/commands", lockCommand())
		if viewOnly && len(b.calls.sent) != 0 || !viewOnly && len(b.calls.sent) != 1 {
			t.Errorf("view only %t: got commands %+v", viewOnly, b.calls.sent)
		}
		// What is mailed to a person is the person's own choice.
		mails := url.Values{"topic": {"smoke"}}
		b.want(t, http.StatusSeeOther, "POST", "/notifications", mails)
		has(t, b.page(t, "/notifications"), `value="smoke" checked`)
		for _, action := range []string{
			b.path + "/place", b.path + "/pairing", b.path + "/removal", b.path + "/reset-link",
			b.path + "/remove", device + "/label", device + "/forget",
		} {
			b.want(t, http.StatusForbidden, "POST", action, url.Values{})
		}
		for _, path := range []string{"/attention/seen", "/sites/" + b.SiteID + "/actions/lock"} {
			if got := b.ask("POST", path, url.Values{}).StatusCode; viewOnly && got != want {
				t.Errorf("%s: got %d, want %d for a viewer", path, got, want)
			}
		}
	}
}
