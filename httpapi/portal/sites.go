package portal

import (
	"errors"
	"net/http"

	"hubcloud/domain"
)

// sitesView is the page of an organization's sites, with their hubs.
type sitesView struct {
	Shell
	Sites   []siteLine
	HasMore bool
	// NewSite and NewHub are what was typed into the forms, each with what is wrong with it.
	NewSite struct{ Name, Problem string }
	NewHub  struct{ Serial, Site, Name, Problem string }
}

// siteLine is a site with its hubs.
type siteLine struct {
	domain.Site
	Hubs []domain.Hub
}

// sites shows the sites and hubs.
func (v *visit) sites() error { return v.showSites(http.StatusOK, sitesView{}) }

func (v *visit) showSites(status int, view sitesView) error {
	ctx := v.r.Context()
	sites, err := v.p.ReadModels.Sites(ctx, v.member.OrgID, listLimit, "")
	if err != nil {
		return err
	}
	hubs, err := v.p.ReadModels.Hubs(ctx, v.member.OrgID, nil, hubLimit, "")
	if err != nil {
		return err
	}
	at := map[string][]domain.Hub{}
	for _, hub := range hubs.Data {
		at[hub.SiteID] = append(at[hub.SiteID], hub)
	}
	for _, site := range sites.Data {
		view.Sites = append(view.Sites, siteLine{site, at[site.ID]})
	}
	view.HasMore = sites.HasMore || hubs.HasMore
	view.Shell = v.shell("Sites and hubs", "sites")
	v.render(status, "sites.html", view)
	return nil
}

// hubLimit is the most hubs that the page of sites lists.
const hubLimit = 1000

// createSite begins a site.
func (v *visit) createSite() error {
	var view sitesView
	view.NewSite.Name = v.field("name")
	_, err := v.p.Directory.CreateSite(v.r.Context(), v.origin(), v.member.OrgID, view.NewSite.Name)
	if problem, ok := refusalText(err); ok {
		view.NewSite.Problem = problem
		return v.showSites(http.StatusBadRequest, view)
	}
	if err != nil {
		return err
	}
	v.redirectInOrg("sites", "site-created")
	return nil
}

// renameSite gives a site another name.
func (v *visit) renameSite() error {
	if _, err := v.p.Directory.RenameSite(v.r.Context(), v.origin(), v.member.OrgID, v.r.PathValue("site"), v.field("name")); err != nil {
		return err
	}
	v.redirectInOrg("sites", "site-renamed")
	return nil
}

// addHub adds a hub by the serial on its label, or moves it to another site.
func (v *visit) addHub() error {
	var view sitesView
	view.NewHub.Serial, view.NewHub.Site, view.NewHub.Name = v.field("serial"), v.field("site"), v.field("name")
	hub, ok := domain.ParseSerial(view.NewHub.Serial)
	if !ok {
		view.NewHub.Problem = "That is no serial. It stands on the hub's label and looks like HUB-7K2M-Q4XD-93TA; dashes and capitals do not matter."
		return v.showSites(http.StatusBadRequest, view)
	}
	add := domain.AddHub{OrgID: v.member.OrgID, HubID: hub, SiteID: view.NewHub.Site}
	if view.NewHub.Name != "" {
		add.Name = &view.NewHub.Name
	}
	err := v.p.Directory.AddHub(v.r.Context(), v.origin(), add)
	switch problem, ok := refusalText(err); {
	case errors.Is(err, &domain.Error{Code: domain.CodeHubNotAddable}):
		view.NewHub.Problem = "This hub cannot be added: no hub has that serial, or it has not come online yet, or another organization has it. " +
			"Compare the serial with the label, connect the hub to power and network, and try again a minute later."
		return v.showSites(http.StatusUnprocessableEntity, view)
	case ok:
		view.NewHub.Problem = problem
		return v.showSites(http.StatusBadRequest, view)
	case err != nil:
		return err
	}
	v.redirectInOrg("sites", "hub-added")
	return nil
}
