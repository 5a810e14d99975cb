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
	Shell
	Sites     []domain.Site
	MoreSites pager
	Hubs      []hubLine
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

// hubLine is a hub with what its site is called.
type hubLine struct {
	domain.Hub
	Site string
}

// sites shows the sites and hubs.
func (v *visit) sites() error { return v.showSites(http.StatusOK, sitesView{}) }

func (v *visit) showSites(status int, view sitesView) error {
	ctx := v.r.Context()
	view.Find, view.Query = v.asked("find"), v.listQuery()
	var err error
	view.Sites, view.MoreSites, err = readPage(
		v,
		"sites",
		"sites",
		func(limit int, after string) (domain.Page[domain.Site], error) {
			return v.p.ReadModels.Sites(ctx, v.member.OrgID, limit, after)
		},
		func(s domain.Site) string { return s.ID },
	)
	if err != nil {
		return err
	}
	if err := v.chooseSite(&view); err != nil {
		return err
	}
	hubs, ways, err := readPage(
		v,
		"sites",
		"hubs",
		func(limit int, after string) (domain.Page[domain.Hub], error) {
			return v.p.ReadModels.FindHubs(
				ctx, v.member.OrgID, view.Chosen.ID, view.Find, limit, after,
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
		view.Hubs = append(view.Hubs, hubLine{hub, called[hub.SiteID]})
	}
	view.Shell = v.shell("Sites and hubs", "sites")
	v.render(status, "sites.html", view)
	return nil
}

// chooseSite finds the sites that can be chosen. The one that was is among them, however many there
// are.
func (v *visit) chooseSite(view *sitesView) error {
	choices, err := v.p.ReadModels.Sites(v.r.Context(), v.member.OrgID, maxSites, "")
	if err != nil {
		return err
	}
	view.Choices = choices.Data
	asked := v.asked("site")
	if asked == "" {
		return nil
	}
	i := slices.IndexFunc(view.Choices, func(s domain.Site) bool { return s.ID == asked })
	if i >= 0 {
		view.Chosen = view.Choices[i]
		return nil
	}
	switch view.Chosen, err = v.p.ReadModels.Site(v.r.Context(), v.member.OrgID, asked); {
	case errors.Is(err, &domain.Error{Code: domain.CodeNotFound}):
		return nil // it is asked for by an old address: then all hubs are shown
	case err != nil:
		return err
	}
	view.Choices = append(view.Choices, view.Chosen)
	return nil
}

// createSite begins a site.
func (v *visit) createSite() error {
	var view sitesView
	view.NewSite.Name = v.field("name")
	err := v.once(func() error {
		_, err := v.p.Directory.CreateSite(
			v.r.Context(), v.origin(), v.member.OrgID, view.NewSite.Name,
		)
		return err
	})
	if errors.Is(err, errSentBefore) {
		v.redirectInOrg("sites"+v.listQuery(), "")
		return nil
	}
	if problem, ok := refusalText(err); ok {
		view.NewSite.Problem = problem
		return v.showSites(refusedStatus(err), view)
	}
	if err != nil {
		return err
	}
	v.redirectInOrg("sites", "site-created")
	return nil
}

// renameSite gives a site another name.
func (v *visit) renameSite() error {
	var view sitesView
	view.NewName.Site, view.NewName.Name = v.r.PathValue("site"), v.field("name")
	_, err := v.p.Directory.RenameSite(
		v.r.Context(), v.origin(), v.member.OrgID, view.NewName.Site, view.NewName.Name,
	)
	if problem, ok := refusalText(err); ok {
		view.NewName.Problem = problem
		return v.showSites(refusedStatus(err), view)
	}
	if err != nil {
		return err
	}
	v.redirectInOrg("sites"+v.listQuery(), "site-renamed")
	return nil
}

// addHub adds a hub by the serial on its label, or moves it to another site.
func (v *visit) addHub() error {
	var view sitesView
	view.NewHub.Serial, view.NewHub.Site, view.NewHub.Name = v.field("serial"), v.field("site"), v.field("name")
	hub, ok := domain.ParseSerial(strings.Join(strings.Fields(view.NewHub.Serial), "-"))
	if !ok {
		view.NewHub.Problem = "That is no serial. It stands on the hub's label and looks like " +
			"HUB-7K2M-Q4XD-93TA; dashes, spaces and capitals do not matter."
		return v.showSites(http.StatusBadRequest, view)
	}
	add := domain.AddHub{OrgID: v.member.OrgID, HubID: hub, SiteID: view.NewHub.Site}
	if view.NewHub.Name != "" {
		add.Name = &view.NewHub.Name
	}
	_, err := v.p.Directory.AddHub(v.r.Context(), v.origin(), add)
	switch problem, ok := refusalText(err); {
	case errors.Is(err, &domain.Error{Code: domain.CodeHubNotAddable}):
		view.NewHub.Problem = "This hub cannot be added: no hub has that serial, or it has not " +
			"come online yet, or another organization has it. " +
			"Compare the serial with the label, connect the hub to power and network, and try again a minute later."
		return v.showSites(http.StatusUnprocessableEntity, view)
	case ok:
		view.NewHub.Problem, view.NewHub.Field = problem, refusedField(err)
		return v.showSites(refusedStatus(err), view)
	case err != nil:
		return err
	}
	v.redirectInOrg("sites"+v.listQuery(), "hub-added")
	return nil
}
