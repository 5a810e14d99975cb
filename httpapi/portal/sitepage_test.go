package portal_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"hubcloud/domain"
)

// A site's page has its hubs, and a form only for those who may rename it.
func TestSitePage(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	path := inOne + "/sites/" + site
	for who, manages := range map[string]bool{olga: true, max: false} {
		b := w.open(t, nil).signIn(who)
		page := b.get(path, http.StatusOK)
		checkPage(t, page)
		if !strings.Contains(page, string(ownHub)) ||
			strings.Contains(page, "/rename") != manages {
			t.Errorf("%s: got %s, want the hub, and a form: %t", who, page, manages)
		}
		b.get("/portal/"+orgTwo+"/sites/"+site, http.StatusNotFound)
		b.get(inOne+"/sites/none", http.StatusNotFound)
		b.get(inOne+"/sites/"+site+"/actions/none", http.StatusNotFound)
	}
	b := w.open(t, nil).signIn(olga)
	if to, _ := b.post(path+"/rename", http.StatusSeeOther, "name", " Quarry "); to != path {
		t.Errorf("redirected to %q, want the site's page", to)
	}
	w.wantChange(t, olga+": site.renamed Quarry Quarry")
	long := strings.Repeat("x", 201)
	if _, page := b.post(path+"/rename", http.StatusBadRequest, "name", long); !strings.Contains(
		page, `id="rename-problem"`,
	) {
		t.Errorf("got %s, want the error beside the field", page)
	}
	b.post("/portal/"+orgTwo+"/sites/"+site+"/rename", http.StatusNotFound, "name", "Mine")
	w.open(t, nil).signIn(max).post(path+"/rename", http.StatusForbidden, "name", "Mine")
}

// "Lock all" counted the doors of hubs that answer, so that a door of an offline hub was missing in
// the list and in the result.
func TestLockAllNamesDoorsOfOfflineHubs(t *testing.T) {
	t.Parallel()
	b := newHubBackend(t)
	b.fails = domain.Errorf(domain.CodeHubOffline, "the hub is offline")
	b.reported = []domain.ReportedState{
		b.state(1, "Side door", "lock", "false"), b.state(2, "Hall", "temperature", "20"),
	}
	path := "/sites/" + b.SiteID + "/actions/lock"
	page := b.page(t, path)
	checkPage(t, page)
	lacks(t, has(t, page, "last reported <bdi>unlocked</bdi>"), "<bdi>Hall")
	page = read(t, b.ask("POST", path, url.Values{
		"once": {"1"}, "target": {string(b.hub) + "/1/0"},
	}))
	checkPage(t, page)
	has(
		t, page, "0 done, 1 failed of 1.", "<bdi>Side door</bdi>",
		">Not sent: the hub is offline</span>",
	)
}
