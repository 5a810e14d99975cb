package portal

import (
	"fmt"
	"testing"

	"hubcloud/domain"
)

// A dashboard of thousands of hubs was a page of megabytes. It shows pages of hubs, each hub once,
// counts all hubs, and filters by name, id, site and status.
func TestDashboardOfManyHubs(t *testing.T) {
	t.Parallel()
	var sites []domain.Site
	var states []hubState
	for s := range 7 {
		sites = append(sites, domain.Site{ID: fmt.Sprint("site-", s), Name: fmt.Sprint("Mill ", s)})
	}
	const hubs = 1234
	for h := range hubs {
		state := hubState{
			ID:     domain.HubID(fmt.Sprintf("hub-0000-0000-%04d", h)),
			SiteID: fmt.Sprint("site-", h%6),
			Status: domain.HubOnline,
		}
		if h%10 == 0 {
			state.Status, state.Name = domain.HubOffline, fmt.Sprint("Gate ", h)
		}
		states = append(states, state)
	}
	seen := map[domain.HubID]int{}
	for page := range 13 {
		var view dashboardView
		view.fill(sites, states, page)
		shown := 0
		for _, site := range view.Sites {
			shown += len(site.Hubs)
			for _, hub := range site.Hubs {
				seen[hub.ID]++
			}
		}
		if shown > dashboardHubs || !view.Partial || view.Hubs() != hubs || view.Offline != 124 ||
			len(view.Pages) < 4 {
			t.Errorf(
				"page %d: got %d hubs, %+v, want at most a page of hubs and the counts of all",
				page, shown, view.Pages,
			)
		}
	}
	if len(seen) != hubs {
		t.Errorf("got %d hubs on all pages, want %d", len(seen), hubs)
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("got %s %d times, want once", id, n)
		}
	}
	for want, narrowed := range map[int]dashboardView{
		1: {Find: "gate 1230"}, 206: {Find: "mill 0"}, 124: {Status: domain.HubOffline},
		0: {Status: domain.HubUnknown}, 4: {Find: "0000-123"}, hubs: {},
	} {
		narrowed.fill(sites, states, 99)
		if narrowed.Found != want {
			t.Errorf(
				"find %q, status %q: got %d hubs, want %d", narrowed.Find, narrowed.Status,
				narrowed.Found, want,
			)
		}
	}
}

// A dashboard with few hubs shows all of them, and sites without hubs.
func TestDashboardOfFewHubs(t *testing.T) {
	t.Parallel()
	var view dashboardView
	view.fill([]domain.Site{{ID: "a"}, {ID: "b"}}, []hubState{{ID: "hub", SiteID: "b"}}, 0)
	if len(view.Sites) != 2 || view.Partial || view.Pages != nil || view.Search() ||
		view.Unknown != 1 {
		t.Errorf("got %+v, want both sites and no pages", view)
	}
}
