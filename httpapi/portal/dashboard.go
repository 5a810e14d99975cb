package portal

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"hubcloud/domain"
	"hubcloud/httpapi/portal/live"
)

const (
	// maxSites is the most sites that pages show.
	maxSites = 1000
	// dashboardHubs is the most hubs that one page of the dashboard shows, searchFrom from how many
	// on they can be searched.
	dashboardHubs = 250
	searchFrom    = 10
)

// scriptData is what a page's script begins with.
type scriptData struct {
	// Stream is where events come from, FormToken what asking for it needs.
	Stream    string `json:"stream"`
	FormToken string `json:"form_token"`
	// Hub is the page's hub, "" on the dashboard; Hubs is the way to the pages of hubs.
	Hub  domain.HubID `json:"hub"`
	Hubs string       `json:"hubs"`
	// Words are how channels and their values are called.
	Words map[string]live.Word `json:"words"`
}

func (req *request) scriptData(shell Layout, hub domain.HubID) scriptData {
	here := shell.Root + req.member.OrgID
	return scriptData{
		Stream:    here + "/stream",
		FormToken: shell.FormToken,
		Hub:       hub,
		Hubs:      here + "/hubs/",
		Words:     live.Words,
	}
}

// siteView is a site with its hubs.
type siteView struct {
	ID, Name string
	Hubs     []live.HubState
}

type dashboardView struct {
	Layout
	Sites []siteView
	// NoSites says that the organization has none, whatever is looked for.
	NoSites bool
	// Online, Offline and Unknown are how many hubs are, all over the organization.
	Online, Offline, Unknown int
	// Find and Status are what the list was narrowed to, Found how many hubs fit.
	Find   string
	Status domain.HubStatus
	Found  int
	Pages  []pageLink
	// Partial says that the page does not show all hubs.
	Partial bool
	Data    scriptData
}

// Hubs is how many there are.
func (d dashboardView) Hubs() int { return d.Online + d.Offline + d.Unknown }

// Search says whether there is enough to look for something.
func (d dashboardView) Search() bool { return d.Hubs() >= searchFrom || d.Filtered() }

// PerPage is how many hubs a page shows.
func (d dashboardView) PerPage() int { return dashboardHubs }

// Statuses are those that hubs can be looked for by, with what they are called.
func (d dashboardView) Statuses() map[domain.HubStatus]string {
	return map[domain.HubStatus]string{
		domain.HubOnline:  "online",
		domain.HubOffline: "offline",
		domain.HubUnknown: "never connected",
	}
}

// Filtered says whether only some hubs are wanted.
func (d dashboardView) Filtered() bool { return d.Find != "" || d.Status != "" }

// dashboard shows the organization's sites and hubs, and what happens at them.
func (req *request) dashboard() error {
	sites, err := req.portal.ReadModels.Sites(req.http.Context(), req.member.OrgID, maxSites, "")
	if err != nil {
		return err
	}
	states, err := req.portal.Live.States(req.http.Context(), req.member.OrgID, "")
	if err != nil {
		return err
	}
	view := dashboardView{
		Layout:  req.layout("Dashboard", "dashboard"),
		NoSites: len(sites.Data) == 0,
	}
	view.Scripts = []string{"dashboard.js"}
	view.Data = req.scriptData(view.Layout, "")
	query := req.http.URL.Query()
	view.Find, view.Status = strings.TrimSpace(query.Get("find")), domain.HubStatus(query.Get("status"))
	page, _ := strconv.Atoi(query.Get("page")) // none is the first
	view.fill(sites.Data, states, page-1)
	req.render(http.StatusOK, "dashboard.html", view)
	return nil
}

// fill counts all hubs and puts those of a page, counted from 0, to their sites.
func (d *dashboardView) fill(sites []domain.Site, states []live.HubState, page int) {
	at := make(map[string][]live.HubState, len(sites))
	for _, state := range states {
		switch state.Status {
		case domain.HubOnline:
			d.Online++
		case domain.HubOffline:
			d.Offline++
		default:
			d.Unknown++
		}
		at[state.SiteID] = append(at[state.SiteID], state)
	}
	var wanted []siteView
	for _, site := range sites {
		view := siteView{ID: site.ID, Name: site.Name}
		for _, state := range at[site.ID] {
			if d.matches(site, state) {
				view.Hubs = append(view.Hubs, state)
			}
		}
		d.Found += len(view.Hubs)
		if len(view.Hubs) > 0 || !d.Filtered() {
			wanted = append(wanted, view)
		}
	}
	pages := max(1, (d.Found+dashboardHubs-1)/dashboardHubs)
	page = max(0, min(page, pages-1))
	d.Pages = pageLinks(page, pages, url.Values{"find": {d.Find}, "status": {string(d.Status)}})
	d.Partial = d.Filtered() || pages > 1
	before, end := page*dashboardHubs, (page+1)*dashboardHubs
	for _, site := range wanted {
		from, to := max(0, min(before, len(site.Hubs))), max(0, min(end, len(site.Hubs)))
		before, end = before-len(site.Hubs), end-len(site.Hubs)
		if site.Hubs = site.Hubs[from:to]; from < to || pages == 1 {
			d.Sites = append(d.Sites, site)
		}
	}
}

// wants says whether a hub is one that is looked for: by its name or id, or by its site.
func (d *dashboardView) matches(site domain.Site, state live.HubState) bool {
	if d.Status != "" && d.Status != state.Status {
		return false
	}
	find := strings.ToLower(d.Find)
	return strings.Contains(strings.ToLower(state.Name), find) ||
		strings.Contains(string(state.ID), find) ||
		strings.Contains(strings.ToLower(site.Name), find)
}

// stream answers with the events of the organization, or of one of its hubs, for as long as the
// page is open.
func (req *request) stream() error {
	want := live.StreamRequest{
		Hub:       domain.HubID(req.formValue("hub")),
		Positions: map[domain.HubID]string{},
	}
	if want.Hub != "" {
		if owner, ok := req.portal.Owners.Hub(want.Hub); !ok || owner.OrgID != req.member.OrgID {
			return domain.ErrHubNotFound()
		}
	}
	want.Recent, _ = strconv.Atoi(req.formValue("recent")) // none begins now
	for line := range strings.Lines(req.http.PostForm.Get("positions")) {
		if hub, cursor, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			want.Positions[domain.HubID(hub)] = cursor
		}
	}
	token := req.token
	signedOut, forget := req.portal.SignIn.Ended(token)
	defer forget()
	viewer := live.Viewer{
		OrgID: req.member.OrgID, MemberID: req.member.MemberID, Ended: req.member.Ended,
		SignedOut: signedOut,
		SignedIn: func(ctx context.Context) bool {
			_, err := req.portal.SignIn.Session(ctx, token, req.portal.Now())
			return !errors.Is(err, &domain.Error{Code: domain.CodeUnauthenticated})
		},
	}
	if !viewer.SignedIn(req.http.Context()) { // it ended before anybody listened
		return domain.ErrNotSignedIn()
	}
	return req.portal.Live.Stream(req.w, req.http, viewer, want)
}
