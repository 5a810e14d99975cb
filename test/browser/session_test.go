package browser

import (
	"fmt"
	"testing"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
)

// signOutElsewhere ends the session by a request that the page does not see.
func (p *portal) signOutElsewhere() {
	p.t.Helper()
	if status := eval[int](p.tab, `fetch("/portal/sign-out", {
		method: "POST",
		body: new URLSearchParams({ form_token: document.querySelector("[name=form_token]").value }),
		redirect: "manual",
	}).then((response) => response.status)`); status != 0 { // the status of an opaque redirect
		p.t.Fatalf("signing out: got status %d", status)
	}
}

// TestSessionEndsInForm ends the session while a form is filled in. What was typed was lost, and
// signing in led to the first page.
func TestSessionEndsInForm(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "Sessions")
	p.expect(401)
	p.goTo("/portal/" + p.tenant.Org + "/sites")
	p.signOutElsewhere()
	p.fill("#site-name", "North <mill>")
	p.press(`[aria-labelledby="add-site"] button`)
	p.await(".notice.wait", "your change was not saved")
	p.check("session-ended")
	p.signInHere(p.service, p.tenant.Owner)
	p.await("#draft", "Your session ended before this was saved")
	p.check("draft")
	if got := p.valueOf("#site-name"); got != "North <mill>" {
		t.Errorf("the form after signing in: got %q, want what was typed", got)
	}
	p.press(`[aria-labelledby="add-site"] button`)
	p.await(".notice", "Site created")

	// The page of a hub notices the end of the session by itself.
	p.goTo(p.hubPage())
	p.await("#connection", "Live")
	field := channel(2, "heating_setpoint", "input[type=number]")
	p.retype(field, "23.5")
	p.signOutElsewhere()
	p.await("#session-ended", "Your session has ended")
	p.checkIn("session-ended-live", "#session-ended")
	streamstest.Must(t, p.hub.Report(2, virtualhub.ChannelRef{Key: "heating_setpoint"}, 18.0))
	p.press("#session-ended a")
	p.signInHere(p.service, p.tenant.Owner)
	if want := p.hubPage(); p.path() != want {
		t.Errorf("after signing in: got %s, want %s", p.path(), want)
	}
	p.await(".notice", "Your session ended before this was saved")
	if got := p.valueOf(field); got != "23.5" {
		t.Errorf("the field after signing in: got %q, want 23.5", got)
	}
	if left := eval[string](
		p.tab, fmt.Sprintf("localStorage.getItem(%q) ?? ''", "hubcloud-draft"),
	); left != "" {
		t.Errorf("the browser still keeps %s, want nothing", left)
	}
}
