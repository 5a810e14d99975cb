package portal_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"hubcloud/httpapi/portal"
	"hubcloud/streams/streamstest"
)

// A form whose session had ended was lost, and signing in led to the first page. The sign-in page
// says what happened, and signing in returns to the form with what was typed.
func TestSessionEndsInForm(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	b := w.open(t, nil).signIn(olga)
	token := b.session().FormToken
	before := w.changes(t)
	b.cookies["hubcloud_session"] = "ended"
	to, _ := b.post(
		inOne+"/invitations?find=m", 303, "email", "new@else.example", "role", "admin",
		"unknown", "not kept",
	)
	if want := "/portal/sign-in?next="; !strings.HasPrefix(to, want) {
		t.Fatalf("redirected to %q, want %s…", to, want)
	}
	page := b.get(to, 200)
	has(t, checkPage(t, page), "your change was not saved")
	next, err := url.Parse(to)
	streamstest.Must(t, err)
	b.post("/portal/sign-in", 200, "email", olga, "next", next.Query().Get("next"))
	if to, _ = b.post(w.mailedPath(), 303); to != inOne+"/invitations?find=m" {
		t.Errorf("signing in: redirected to %q, want the form", to)
	}
	page = b.get(inOne+"/members?find=m", 200)
	has(t, checkPage(t, page), "Your session ended", "new@else.example", `id="draft-data"`)
	lacks(t, page, token, "not kept")
	if page = b.get(inOne+"/members", 200); strings.Contains(page, "draft-data") ||
		w.changes(t) != before {
		t.Errorf("got %s and a change or a second draft, want neither", page)
	}
	b.cookies["hubcloud_session"] = "ended"
	if to, _ = b.post("/portal/sign-out", 303); to != "/portal/sign-in" {
		t.Errorf("signing out without a session: redirected to %q", to)
	}
}

// A form that was loaded before the person signed in again was lost. Its page offers it again, but
// only if a page of the portal sent the form.
func TestFormOfEarlierSession(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	b := w.open(t, nil).signIn(olga)
	form := url.Values{"form_token": {portal.MaskToken(b.session().FormToken)}, "name": {"Quay 7"}}
	b.signIn(olga)
	same := http.Header{"Sec-Fetch-Site": {"same-origin"}}
	response, page := b.do("POST", inOne+"/sites", form, same)
	if checkPage(t, page); response.StatusCode != 403 ||
		!strings.Contains(page, "Back to the form") {
		t.Errorf("got %d %s, want 403 and a link to the form", response.StatusCode, page)
	}
	page = b.get(inOne+"/sites", 200)
	has(t, page, "Quay 7")
	none := http.Header{"Sec-Fetch-Site": nil, "Origin": {public}}
	_, page = b.do("POST", inOne+"/sites", form, none)
	if strings.Contains(page, "Back to the form") ||
		strings.Contains(b.get(inOne+"/sites", 200), "Quay 7") {
		t.Error("a form whose origin is not certain was kept")
	}
}
