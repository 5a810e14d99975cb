package portal

import (
	"net/http"
	"slices"

	"hubcloud/domain"
)

// siteHead is the head of every page about a site.
type siteHead struct {
	Layout
	Site domain.Site
}

// sitePage is the page of one site: its hubs, and actions on its devices.
type sitePageView struct {
	siteHead
	Hubs []hubState
	// Attention is what needs attention at the site.
	Attention attentionView
	// Online, Offline and Unknown count the site's hubs by status.
	Online, Offline, Unknown int
	Actions                  []groupAction
	Data                     scriptData
	// NewName is the rejected form of renaming the site.
	NewName struct{ Name, Problem string }
}

// siteHubs returns the site of the path and its hubs, those in trouble first.
func (req *request) siteHubs() (domain.Site, []hubState, error) {
	site, err := req.ReadModels.Site(req.ctx, req.org, req.http.PathValue("site"))
	if err != nil {
		return domain.Site{}, nil, err
	}
	hubs, err := req.statesAt(req.ctx, req.org, site.ID, "")
	if err != nil {
		return domain.Site{}, nil, err
	}
	slices.SortFunc(hubs, compareHubs)
	return site, hubs, nil
}

// sitePage shows a site.
func (req *request) sitePage() error {
	return req.showSite(http.StatusOK, sitePageView{})
}

func (req *request) showSite(status int, view sitePageView) error {
	var err error
	if view.Site, view.Hubs, err = req.siteHubs(); err != nil {
		return err
	}
	for _, hub := range view.Hubs {
		switch hub.Status {
		case domain.HubOnline:
			view.Online++
		case domain.HubOffline:
			view.Offline++
		default:
			view.Unknown++
		}
	}
	view.Actions = groupActions
	view.Layout = req.layout(view.Site.Name, "sites")
	view.Inner = true
	view.Attention, err = req.needsAttention(
		view.Layout, view.Hubs, siteNames([]domain.Site{view.Site}), view.Site.ID, "",
	)
	if err != nil {
		return err
	}
	view.Scripts = []string{"site.js"}
	view.Data = req.scriptData(view.Layout, view.Site.ID, "")
	req.render(status, "site.html", view)
	return nil
}

// renameOnSitePage renames the site of the path, and returns to its page.
func (req *request) renameOnSitePage() error {
	var view sitePageView
	site := req.http.PathValue("site")
	view.NewName.Name = req.formValue("name")
	_, err := req.Directory.RenameSite(req.ctx, req.origin(), req.org, site, view.NewName.Name)
	req.offerUndo(err, "sites/"+site, []string{site})
	return req.finishForm(err, "sites/"+site, "site-renamed", func(status int, problem string) error {
		view.NewName.Problem = problem
		return req.showSite(status, view)
	})
}

// groupAction is an action on many devices at once: one value for all channels with a key.
type groupAction struct {
	// Name stands in the address of the action's page.
	Name string
	Key  string
	// Value is the JSON of the value; "" if the person types a number.
	Value string
	// Label is the text of the link to the action's page, Title the page's heading, and Button the
	// text of its button.
	Label, Title, Button string
}

// groupActions are the actions that pages offer.
var groupActions = []groupAction{
	{"lock", "lock", "true", "Lock all…", "Lock all doors", "Lock"},
	{"close", "barrier", "false", "Close all barriers…", "Close all barriers", "Close"},
	{"off", "switch", "false", "Turn off all switches…", "Turn off all switches", "Turn off"},
	{"on", "switch", "true", "Turn on all switches…", "Turn on all switches", "Turn on"},
	{"heat", "heating_setpoint", "", "Set heating…", "Set one temperature to heat to", "Set"},
	{"cool", "cooling_setpoint", "", "Set cooling…", "Set one temperature to cool to", "Set"},
}

// Typed reports whether the person types the value.
func (a groupAction) Typed() bool { return a.Value == "" }
