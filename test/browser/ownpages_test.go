package browser

import (
	"net/http"
	"strings"
	"testing"

	"hubcloud/test/harness"
)

// TestNotifications chooses what is mailed: smoke at one of two sites.
func TestNotifications(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "Mails")
	p.expect(http.StatusBadRequest)
	north := p.tenant.NewSite("North " + strings.Repeat("very-long-name-", 10))
	p.goTo("/portal/" + p.tenant.Org + "/notifications")
	p.check("notifications")
	eval[any](p.tab, `document.querySelectorAll("main [name=topic]").forEach((i) => { i.checked = i.value == "smoke" })`)
	p.click(`input[name="site"][value="` + north + `"]`)
	eval[any](p.tab, `document.querySelector("#from").value = "22:00"`)
	p.press("main form button") // without an end
	p.await("#mails-problem", "Both must be times of day")
	p.check("problem")
	eval[any](p.tab, `document.querySelector("#to").value = "07:00"`)
	p.press("main form button")
	p.await(".notice", "Saved.")
	if chosen := eval[string](
		p.tab, `[...document.querySelectorAll("main input:checked")].map((i) => i.value).join(" ")`,
	); chosen != "smoke "+north {
		t.Errorf("after saving: got %q chosen, want smoke of the site %s", chosen, north)
	}
	p.check("saved")
}

// TestReaders shows the programs that read events under a name.
func TestReaders(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "Readers")
	readers := "/portal/" + p.tenant.Org + "/readers"
	p.goTo(readers)
	p.await("main", "No program has named itself yet.")
	p.check("none")
	p.report(12, "smoke", true)
	p.report(12, "smoke", false)
	harness.Stored(t, p.hub)
	for name, path := range map[string]string{
		"wall panel": "/events", "archive": "/events?part=2/8",
		"<i>" + strings.Repeat("x", 61): "/hubs/" + p.hub.ID() + "/events?limit=1",
	} {
		p.tenant.Must(http.MethodGet, path, nil, http.StatusOK, "Reader", name)
	}
	p.goTo(readers)
	p.await("main", "wall panel")
	p.await("main", "archive")
	p.await("main", "<i>xxx")
	p.await("main", "Events behind: 1") // the reader of one of two events
	p.check("readers")
}
