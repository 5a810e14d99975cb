package portal

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"hubcloud/domain"
)

// sitesView is the page of an organization's sites and hubs.
type sitesView struct {
	Layout
	Sites     []domain.Site
	MoreSites pager
	Hubs      []hubRow
	MoreHubs  pager
	// Choices are the sites where a hub can be put, and Chosen the one whose hubs alone are shown:
	// its id is empty for all.
	Choices []domain.Site
	Chosen  domain.Site
	// Find is the text that hubs must have, and Query the end of addresses that lead back here.
	Find, Query string
	// NewSite, NewName and NewHub are what was typed into the forms, each with what is wrong with
	// it; NewName's is that of the site.
	NewSite struct{ Name, Problem string }
	NewName struct{ Site, Name, Problem string }
	NewHub  struct{ Serial, Site, Name, Problem, Field string }
}

// Filtered says that hubs may be left out.
func (v sitesView) Filtered() bool { return v.Find != "" || v.Chosen.ID != "" }

// hubRow is a hub with what its site is called.
type hubRow struct {
	domain.Hub
	Site string
}

// sites shows the sites and hubs.
func (req *request) sites() error { return req.showSites(http.StatusOK, sitesView{}) }

func (req *request) showSites(status int, view sitesView) error {
	ctx := req.http.Context()
	view.Find, view.Query = req.queryValue("find"), req.listQuery()
	var err error
	view.Sites, view.MoreSites, err = readPage(
		req,
		"sites",
		"sites",
		func(limit int, after string) (domain.Page[domain.Site], error) {
			return req.portal.ReadModels.Sites(ctx, req.member.OrgID, limit, after)
		},
		func(s domain.Site) string { return s.ID },
	)
	if err != nil {
		return err
	}
	if err := req.loadSiteChoices(&view); err != nil {
		return err
	}
	hubs, ways, err := readPage(
		req,
		"sites",
		"hubs",
		func(limit int, after string) (domain.Page[domain.Hub], error) {
			return req.portal.ReadModels.FindHubs(
				ctx, req.member.OrgID, view.Chosen.ID, view.Find, limit, after,
			)
		},
		func(h domain.Hub) string { return string(h.ID) },
	)
	if err != nil {
		return err
	}
	view.MoreHubs = ways
	called := map[string]string{}
	for _, site := range view.Choices {
		called[site.ID] = site.Name
	}
	for _, hub := range hubs {
		view.Hubs = append(view.Hubs, hubRow{hub, called[hub.SiteID]})
	}
	view.Layout = req.layout("Sites and hubs", "sites")
	req.render(status, "sites.html", view)
	return nil
}

// chooseSite finds the sites that can be chosen. The one that was is among them, however many there
// are.
func (req *request) loadSiteChoices(view *sitesView) error {
	choices, err := req.portal.ReadModels.Sites(req.http.Context(), req.member.OrgID, maxSites, "")
	if err != nil {
		return err
	}
	view.Choices = choices.Data
	asked := req.queryValue("site")
	if asked == "" {
		return nil
	}
	i := slices.IndexFunc(view.Choices, func(s domain.Site) bool { return s.ID == asked })
	if i >= 0 {
		view.Chosen = view.Choices[i]
		return nil
	}
	switch view.Chosen, err = req.portal.ReadModels.Site(req.http.Context(), req.member.OrgID, asked); {
	case errors.Is(err, &domain.Error{Code: domain.CodeNotFound}):
		return nil // it is asked for by an old address: then all hubs are shown
	case err != nil:
		return err
	}
	view.Choices = append(view.Choices, view.Chosen)
	return nil
}

// createSite begins a site.
func (req *request) createSite() error {
	var view sitesView
	view.NewSite.Name = req.formValue("name")
	err := req.submitOnce(func() error {
		_, err := req.portal.Directory.CreateSite(
			req.http.Context(), req.origin(), req.member.OrgID, view.NewSite.Name,
		)
		return err
	})
	if errors.Is(err, errAlreadySubmitted) {
		req.redirectInOrg("sites"+req.listQuery(), "")
		return nil
	}
	if problem, ok := rejectionText(err); ok {
		view.NewSite.Problem = problem
		return req.showSites(rejectionStatus(err), view)
	}
	if err != nil {
		return err
	}
	req.redirectInOrg("sites", "site-created")
	return nil
}

// renameSite gives a site another name.
func (req *request) renameSite() error {
	var view sitesView
	view.NewName.Site, view.NewName.Name = req.http.PathValue("site"), req.formValue("name")
	_, err := req.portal.Directory.RenameSite(
		req.http.Context(), req.origin(), req.member.OrgID, view.NewName.Site, view.NewName.Name,
	)
	if problem, ok := rejectionText(err); ok {
		view.NewName.Problem = problem
		return req.showSites(rejectionStatus(err), view)
	}
	if err != nil {
		return err
	}
	req.redirectInOrg("sites"+req.listQuery(), "site-renamed")
	return nil
}

// addHub adds a hub by the serial on its label, or moves it to another site.
func (req *request) addHub() error {
	var view sitesView
	view.NewHub.Serial, view.NewHub.Site, view.NewHub.Name = req.formValue("serial"), req.formValue("site"), req.formValue("name")
	hub, ok := domain.ParseSerial(strings.Join(strings.Fields(view.NewHub.Serial), "-"))
	if !ok {
		view.NewHub.Problem = "That is no serial. It stands on the hub's label and looks like " +
			"HUB-7K2M-Q4XD-93TA; dashes, spaces and capitals do not matter."
		return req.showSites(http.StatusBadRequest, view)
	}
	add := domain.AddHub{OrgID: req.member.OrgID, HubID: hub, SiteID: view.NewHub.Site}
	if view.NewHub.Name != "" {
		add.Name = &view.NewHub.Name
	}
	_, err := req.portal.Directory.AddHub(req.http.Context(), req.origin(), add)
	switch problem, ok := rejectionText(err); {
	case errors.Is(err, &domain.Error{Code: domain.CodeHubNotAddable}):
		view.NewHub.Problem = "This hub cannot be added: no hub has that serial, or it has not " +
			"come online yet, or another organization has it. " +
			"Compare the serial with the label, connect the hub to power and network, and try again a minute later."
		return req.showSites(http.StatusUnprocessableEntity, view)
	case ok:
		view.NewHub.Problem, view.NewHub.Field = problem, rejectedField(err)
		return req.showSites(rejectionStatus(err), view)
	case err != nil:
		return err
	}
	req.redirectInOrg("sites"+req.listQuery(), "hub-added")
	return nil
}
