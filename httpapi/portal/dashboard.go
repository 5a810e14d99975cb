package portal

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"hubcloud/domain"
)

const (
	// maxSites is how many sites pages show.
	maxSites = 1000
	// dashboardHubs is how many hubs one page of the dashboard shows.
	dashboardHubs = 100
	// searchFrom is the number of hubs from which on the dashboard has a search form.
	searchFrom = 10
)

// scriptData is what a page's script starts from.
type scriptData struct {
	// Stream is the address of the page's event stream, and FormToken the form token that it
	// requires.
	Stream    string `json:"stream"`
	FormToken string `json:"form_token"`
	// Site is the page's site and Hub the page's hub; both are "" on the dashboard.
	Site string       `json:"site"`
	Hub  domain.HubID `json:"hub"`
	// Hubs is the address that the addresses of hub pages begin with.
	Hubs string `json:"hubs"`
	// Words are the labels of channels and values.
	Words map[string]word `json:"words"`
	// Texts are the texts of scripts.
	Texts map[string]string `json:"texts"`
	// Units are the units of channels that always have the same.
	Units map[string]string `json:"units"`
	// Severities are the rules for the severities of events.
	Severities severityRules `json:"severities"`
}

func (req *request) scriptData(layout Layout, site string, hub domain.HubID) scriptData {
	org := layout.Root + req.org
	return scriptData{
		Stream:    org + "/stream",
		FormToken: layout.FormToken,
		Site:      site,
		Hub:       hub,
		Hubs:      org + "/hubs/",
		Words:     words,
		Texts:     scriptTexts,
		Units:     units,

		Severities: severities,
	}
}

// siteView is a site with its hubs.
type siteView struct {
	ID, Name string
	Hubs     []hubState
}

type dashboardView struct {
	Layout
	Sites []siteView
	// NoSites reports whether the organization has no sites, regardless of the filter.
	NoSites bool
	// Steps are the steps of setting up a new organization; nil for others.
	Steps []firstStep
	// Try reports whether a virtual hub is offered, and TrySite is the site for it; "" for a new one.
	Try     bool
	TrySite string
	// Online, Offline and Unknown count the hubs of the whole organization by status, and
	// Reconnecting those that are expected back after a restart of the service.
	Online, Offline, Unknown, Reconnecting int
	// Find and Status are the filter, and Found is how many hubs match it.
	Find   string
	Status domain.HubStatus
	Found  int
	Pages  []pageLink
	// Attention is what needs attention in the whole organization.
	Attention attentionView
	// Partial reports whether the page leaves hubs out.
	Partial bool
	Data    scriptData
}

// Hubs returns how many hubs the organization has.
func (d dashboardView) Hubs() int { return d.Online + d.Offline + d.Unknown + d.Reconnecting }

// Search reports whether the page has a search form.
func (d dashboardView) Search() bool { return d.Hubs() >= searchFrom || d.Filtered() }

// PerPage returns how many hubs a page shows.
func (d dashboardView) PerPage() int { return dashboardHubs }

// Statuses returns the statuses to filter by, with their labels.
func (d dashboardView) Statuses() map[domain.HubStatus]string {
	return map[domain.HubStatus]string{
		domain.HubOnline:  statusText(domain.HubOnline),
		domain.HubOffline: statusText(domain.HubOffline),
		domain.HubUnknown: statusText(domain.HubUnknown),
	}
}

// Filtered reports whether the page has a filter.
func (d dashboardView) Filtered() bool { return d.Find != "" || d.Status != "" }

// dashboard shows the organization's sites and hubs, and its latest events.
func (req *request) dashboard() error {
	sites, err := req.allSites()
	if err != nil {
		return err
	}
	states, err := req.hubStates(req.ctx, req.org, "")
	if err != nil {
		return err
	}
	view := dashboardView{
		Layout:  req.layout("Overview", "overview"),
		NoSites: len(sites) == 0,
	}
	view.Scripts = []string{"dashboard.js"}
	view.Data = req.scriptData(view.Layout, "", "")
	query := req.http.URL.Query()
	view.Find = strings.TrimSpace(query.Get("find"))
	view.Status = domain.HubStatus(query.Get("status"))
	page, _ := strconv.Atoi(query.Get("page")) // counted from 1; 0 without a page, like 1
	view.fill(sites, states, page-1)
	if !view.NoSites {
		view.Attention, err = req.needsAttention(
			view.Layout, states, siteNames(sites), "", "",
		)
		if err != nil {
			return err
		}
		view.Counts = view.Attention.Counts()
	}
	if view.Steps, err = req.firstSteps(len(sites), len(states)); err != nil {
		return err
	}
	if view.Try = view.Steps != nil && req.mayTry(); view.Try && len(sites) > 0 {
		view.TrySite = sites[0].ID
	}
	req.render(http.StatusOK, "dashboard.html", view)
	return nil
}

// fill counts the hubs and fills one page, counted from 0, with the sites and hubs that match the
// filter. A page beyond the last is the last.
func (d *dashboardView) fill(sites []domain.Site, states []hubState, page int) {
	hubsBySite := make(map[string][]hubState, len(sites))
	for _, state := range states {
		switch state.Shown(d.Now) {
		case statusReconnecting:
			d.Reconnecting++
		case domain.HubOnline:
			d.Online++
		case domain.HubOffline:
			d.Offline++
		default:
			d.Unknown++
		}
		hubsBySite[state.SiteID] = append(hubsBySite[state.SiteID], state)
	}
	for _, hubs := range hubsBySite {
		slices.SortFunc(hubs, compareHubs)
	}
	var matching []siteView
	for _, site := range sites {
		view := siteView{ID: site.ID, Name: site.Name}
		for _, state := range hubsBySite[site.ID] {
			if d.matches(site, state) {
				view.Hubs = append(view.Hubs, state)
			}
		}
		d.Found += len(view.Hubs)
		if len(view.Hubs) > 0 || !d.Filtered() {
			matching = append(matching, view)
		}
	}
	pages := max(1, (d.Found+dashboardHubs-1)/dashboardHubs)
	page = max(0, min(page, pages-1))
	d.Pages = pageLinks(page, pages, url.Values{"find": {d.Find}, "status": {string(d.Status)}})
	d.Partial = d.Filtered() || pages > 1
	before, end := page*dashboardHubs, (page+1)*dashboardHubs
	for _, site := range matching {
		from, to := max(0, min(before, len(site.Hubs))), max(0, min(end, len(site.Hubs)))
		before, end = before-len(site.Hubs), end-len(site.Hubs)
		if site.Hubs = site.Hubs[from:to]; from < to || pages == 1 {
			d.Sites = append(d.Sites, site)
		}
	}
}

// matches reports whether a hub matches the filter: its status, and a text in its name or id or in
// the name of its site.
func (d *dashboardView) matches(site domain.Site, state hubState) bool {
	if d.Status != "" && d.Status != state.Status {
		return false
	}
	find := strings.ToLower(d.Find)
	return strings.Contains(strings.ToLower(state.Name), find) ||
		strings.Contains(string(state.ID), find) ||
		strings.Contains(strings.ToLower(site.Name), find)
}

// openStream answers with the events of the organization, of one of its sites, or of one of its hubs,
// while the page is open.
func (req *request) openStream() error {
	want := streamRequest{
		Hub:      domain.HubID(req.formValue("hub")),
		Site:     req.formValue("site"),
		Position: req.formValue("position"),
	}
	if want.Hub != "" {
		if owner, ok := req.Hubs.Hub(want.Hub); !ok || owner.OrgID != req.org {
			return domain.ErrHubNotFound()
		}
	}
	if want.Site != "" {
		_, err := req.ReadModels.Site(req.ctx, req.org, want.Site)
		if err != nil {
			return err
		}
	}
	want.Recent, _ = strconv.Atoi(req.formValue("recent")) // 0, no recent events, if there is none
	token := req.token
	signedOut, forget := req.SignIn.Ended(token)
	defer forget()
	viewer := streamViewer{
		OrgID: req.org, MemberID: req.member.MemberID, Ended: req.member.Ended,
		SignedOut: signedOut,
		SignedIn: func(ctx context.Context) bool {
			_, err := req.SignIn.Session(ctx, token, req.Now())
			return !errors.Is(err, &domain.Error{Code: domain.CodeUnauthenticated})
		},
	}
	if !viewer.SignedIn(req.ctx) { // the session ended before Ended was called
		return domain.ErrNotSignedIn()
	}
	return req.stream(req.w, req.http, viewer, want)
}
