package portal

import (
	"cmp"
	"errors"
	"net/http"
	"slices"

	"hubcloud/domain"
)

// findPage is how many hubs are read at once.
const findPage = 1000

// sitesView is the page of an organization's sites and hubs.
type sitesView struct {
	Layout
	Sites     []siteSummary
	MoreSites pager
	// Reported reports whether the last reports of the devices could be read.
	Reported bool
	Hubs     []hubRow
	MoreHubs pager
	// Try reports whether a virtual hub is offered.
	Try bool
	// Choices are the sites that a hub can be added to.
	Choices []domain.Site
	// Chosen is the site whose hubs the page shows; zero means the hubs of all sites.
	Chosen domain.Site
	// Find is the text that hubs must contain. Query is the list query of links and forms that
	// return to this page.
	Find, Query string
	// NewSite is the rejected form of a new site.
	NewSite struct{ Name, Problem string }
	// NewName is the rejected form of renaming a site.
	NewName struct{ Site, Name, Problem string }
	// NewHub is the rejected form of adding a hub. Field is the rejected field; "" means the
	// serial.
	NewHub struct{ Serial, Site, Name, Problem, Field string }
}

// Filtered reports whether the page may leave hubs out.
func (v sitesView) Filtered() bool { return v.Find != "" || v.Chosen.ID != "" }

// hubRow is a hub with the name of its site.
type hubRow struct {
	hubState
	Site string
	// First reports whether the hub is the first of its site on the page.
	First bool
}

// sites shows the sites and hubs.
func (req *request) sites() error { return req.showSites(http.StatusOK, sitesView{}) }

func (req *request) showSites(status int, view sitesView) error {
	view.Find, view.Query = req.queryValue("find"), req.listQuery()
	if err := req.loadSiteChoices(&view); err != nil {
		return err
	}
	sites, more, err := readPage(
		req, "sites", "sites",
		func(limit int, after string) (domain.Page[domain.Site], error) {
			if len(view.Choices) >= maxSites { // Choices may lack sites
				return req.ReadModels.Sites(req.ctx, domain.Reach{OrgID: req.org}, limit, after)
			}
			return pageInOrder(view.Choices, limit, after, siteID, compareSites)
		},
		siteID,
	)
	if err != nil {
		return err
	}
	view.MoreSites = more
	if view.Sites, view.Reported, err = req.summarize(sites); err != nil {
		return err
	}
	found, err := req.findHubs(view.Chosen.ID, view.Find)
	if err != nil {
		return err
	}
	names := siteNames(view.Choices)
	bySite := func(a, b domain.Hub) int {
		return cmp.Or(
			compareNatural(names[a.SiteID], names[b.SiteID]), cmp.Compare(a.SiteID, b.SiteID),
			compareNamedHubs(a, b),
		)
	}
	hubs, links, err := readPage(
		req, "sites", "hubs",
		func(limit int, after string) (domain.Page[domain.Hub], error) {
			return pageInOrder(found, limit, after, hubID, bySite)
		},
		hubID,
	)
	if err != nil {
		return err
	}
	view.MoreHubs = links
	for i, hub := range hubs {
		first := i == 0 || hubs[i-1].SiteID != hub.SiteID
		view.Hubs = append(view.Hubs, hubRow{req.stateOf(hub), names[hub.SiteID], first})
	}
	view.Layout, view.Try = req.layout("Sites", "sites"), req.mayTry()
	if req.member.Manages() {
		view.Scripts = []string{"scan.js"}
		req.w.Header().Set("Permissions-Policy", "camera=(self), microphone=(), geolocation=()")
	}
	req.render(status, "sites.html", view)
	return nil
}

func siteID(site domain.Site) string { return site.ID }
func hubID(hub domain.Hub) string    { return string(hub.ID) }

// allSites returns the sites of the organization by name, at most maxSites.
func (req *request) allSites() ([]domain.Site, error) {
	page, err := req.ReadModels.Sites(req.ctx, domain.Reach{OrgID: req.org}, maxSites, "")
	slices.SortFunc(page.Data, compareSites)
	return page.Data, err
}

// findHubs returns all hubs at a site whose name, id or serial contains find, as FindHubs does.
func (req *request) findHubs(site, find string) (found []domain.Hub, err error) {
	for after := ""; ; after = string(found[len(found)-1].ID) {
		page, err := req.ReadModels.FindHubs(req.ctx, req.org, site, find, findPage, after)
		if err != nil {
			return nil, err
		}
		found = append(found, page.Data...)
		if !page.HasMore || len(page.Data) == 0 {
			return found, nil
		}
	}
}

// loadSiteChoices sets Choices and Chosen. Choices includes the chosen site even if the
// organization has more sites than the page shows.
func (req *request) loadSiteChoices(view *sitesView) (err error) {
	if view.Choices, err = req.allSites(); err != nil {
		return err
	}
	id := req.queryValue("site")
	if id == "" {
		return nil
	}
	i := slices.IndexFunc(view.Choices, func(s domain.Site) bool { return s.ID == id })
	if i >= 0 {
		view.Chosen = view.Choices[i]
		return nil
	}
	view.Chosen, err = req.ReadModels.Site(req.ctx, req.org, id)
	switch {
	case errors.Is(err, &domain.Error{Code: domain.CodeNotFound}):
		return nil // the site no longer exists: show the hubs of all sites
	case err != nil:
		return err
	}
	view.Choices = append(view.Choices, view.Chosen)
	return nil
}

// createSite creates a site.
func (req *request) createSite() error {
	var view sitesView
	view.NewSite.Name = req.formValue("name")
	err := req.submitOnce(func() error {
		_, err := req.Directory.CreateSite(req.ctx, req.origin(), req.org, view.NewSite.Name)
		return err
	})
	if errors.Is(err, errAlreadySubmitted) {
		return req.finish(nil, "sites"+req.listQuery(), "")
	}
	return req.finishForm(err, "sites", "site-created", func(status int, problem string) error {
		view.NewSite.Problem = problem
		return req.showSites(status, view)
	})
}

// renameSite renames a site.
func (req *request) renameSite() error {
	var view sitesView
	view.NewName.Site, view.NewName.Name = req.http.PathValue("site"), req.formValue("name")
	_, err := req.Directory.RenameSite(
		req.ctx, req.origin(), req.org, view.NewName.Site, view.NewName.Name,
	)
	req.offerUndo(err, "sites"+req.listQuery(), []string{view.NewName.Site})
	again := func(status int, problem string) error {
		view.NewName.Problem = problem
		return req.showSites(status, view)
	}
	return req.finishForm(err, "sites"+req.listQuery(), "site-renamed", again)
}

// addHub adds a hub by the serial on its label, or moves it to another site.
func (req *request) addHub() error {
	var view sitesView
	view.NewHub.Serial = req.formValue("serial")
	view.NewHub.Site = req.formValue("site")
	view.NewHub.Name = req.formValue("name")
	hub, ok := domain.ParseSerial(view.NewHub.Serial)
	if !ok {
		view.NewHub.Problem = "This is not a serial. The serial is on the hub's label and looks " +
			"like HUB-7K2M-Q4XD-93TA. Dashes, spaces and case do not matter."
		return req.showSites(http.StatusBadRequest, view)
	}
	if view.NewHub.Site == "" {
		view.NewHub.Problem, view.NewHub.Field = "Choose the site where the hub is.", "site_id"
		return req.showSites(http.StatusBadRequest, view)
	}
	add := domain.AddHub{OrgID: req.org, HubID: hub, SiteID: view.NewHub.Site}
	if view.NewHub.Name != "" {
		add.Name = &view.NewHub.Name
	}
	// The lookup fails for a hub that is new; AddHub reports other errors.
	before, found := req.ReadModels.Hub(req.ctx, req.org, hub)
	added, err := req.Directory.AddHub(req.ctx, req.origin(), add)
	if errors.Is(err, &domain.Error{Code: domain.CodeHubNotAddable}) {
		view.NewHub.Problem = "This hub cannot be added: no hub has that serial, or it has not come " +
			"online yet, or another organization has it. Compare the serial with the label, connect " +
			"the hub to power and network, and try again a minute later."
		return req.showSites(http.StatusUnprocessableEntity, view)
	}
	notice := "hub-added"
	if found == nil {
		moved := before.SiteID != added.SiteID
		renamed := add.Name != nil && (before.Name == nil || *before.Name != *add.Name)
		notice = addedAgainNotice(moved, renamed)
	}
	again := func(status int, problem string) error {
		view.NewHub.Problem, view.NewHub.Field = problem, rejectedField(err)
		return req.showSites(status, view)
	}
	return req.finishForm(err, "hubs/"+string(hub), notice+" "+string(hub), again)
}

// addVirtualHub adds the organization's virtual hub: at the chosen site, at the only one, or at a new
// one if there is none.
func (req *request) addVirtualHub() error {
	hub := domain.VirtualHubID(req.org)
	err := req.submitOnce(func() error {
		site := req.formValue("site")
		if site == "" {
			created, err := req.Directory.CreateSite(req.ctx, req.origin(), req.org, "Example site")
			if err != nil {
				return err
			}
			site = created.ID
		}
		_, err := req.Directory.AddVirtualHub(req.ctx, req.origin(), req.org, site)
		return err
	})
	if errors.Is(err, errAlreadySubmitted) {
		return req.finish(nil, "hubs/"+string(hub), "")
	}
	return req.finish(err, "hubs/"+string(hub), "hub-virtual "+string(hub))
}

// mayTry reports whether the person may add the virtual hub of the organization, which has none.
func (req *request) mayTry() bool {
	_, added := req.Hubs.Hub(domain.VirtualHubID(req.org))
	return req.member.Manages() && !added
}

// addedAgainNotice returns the notice for adding a hub that the organization had already.
func addedAgainNotice(moved, renamed bool) string {
	switch {
	case moved && renamed:
		return "hub-changed"
	case moved:
		return "hub-moved"
	case renamed:
		return "hub-renamed"
	}
	return "hub-unchanged"
}
