package portal

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"hubcloud/domain"
	"hubcloud/httpapi/portal/live"
)

// maxSites is the most sites that pages show.
const maxSites = 1000

// liveData is what a page's script begins with.
type liveData struct {
	// Stream is where events come from, FormToken what asking for it needs.
	Stream    string `json:"stream"`
	FormToken string `json:"form_token"`
	// Hub is the page's hub, "" on the dashboard; Hubs is the way to the pages of hubs.
	Hub  domain.HubID `json:"hub"`
	Hubs string       `json:"hubs"`
	// Words are how channels and their values are called.
	Words map[string]live.Word `json:"words"`
}

func (v *visit) liveData(shell Shell, hub domain.HubID) liveData {
	here := shell.Root + v.member.OrgID
	return liveData{Stream: here + "/stream", FormToken: shell.FormToken, Hub: hub, Hubs: here + "/hubs/", Words: live.Words}
}

// siteView is a site with its hubs.
type siteView struct {
	ID, Name string
	Hubs     []live.HubState
}

type dashboardView struct {
	Shell
	Sites []siteView
	// Online, Offline and Unknown are how many hubs are.
	Online, Offline, Unknown int
	Data                     liveData
}

// Hubs is how many there are.
func (d dashboardView) Hubs() int { return d.Online + d.Offline + d.Unknown }

// dashboard shows the organization's sites and hubs, and what happens at them.
func (v *visit) dashboard() error {
	sites, err := v.p.ReadModels.Sites(v.r.Context(), v.member.OrgID, maxSites, "")
	if err != nil {
		return err
	}
	states, err := v.p.Live.States(v.r.Context(), v.member.OrgID, "")
	if err != nil {
		return err
	}
	view := dashboardView{Shell: v.shell("Dashboard", "dashboard")}
	view.Scripts = []string{"dashboard.js"}
	view.Data = v.liveData(view.Shell, "")
	at := make(map[string]int, len(sites.Data))
	for i, site := range sites.Data {
		at[site.ID] = i
		view.Sites = append(view.Sites, siteView{ID: site.ID, Name: site.Name})
	}
	for _, state := range states {
		if i, ok := at[state.SiteID]; ok {
			view.Sites[i].Hubs = append(view.Sites[i].Hubs, state)
		}
		switch state.Status {
		case domain.HubOnline:
			view.Online++
		case domain.HubOffline:
			view.Offline++
		default:
			view.Unknown++
		}
	}
	v.render(http.StatusOK, "dashboard.html", view)
	return nil
}

// stream answers with the events of the organization, or of one of its hubs, for as long as the page is open.
func (v *visit) stream() error {
	want := live.StreamRequest{Hub: domain.HubID(v.field("hub")), Positions: map[domain.HubID]string{}}
	if want.Hub != "" {
		if owner, ok := v.p.Owners.Hub(want.Hub); !ok || owner.OrgID != v.member.OrgID {
			return domain.ErrHubNotFound()
		}
	}
	want.Recent, _ = strconv.Atoi(v.field("recent")) // none begins now
	for line := range strings.Lines(v.r.PostForm.Get("positions")) {
		if hub, cursor, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			want.Positions[domain.HubID(hub)] = cursor
		}
	}
	token := v.token
	signedOut, forget := v.p.SignIn.Ended(token)
	defer forget()
	viewer := live.Viewer{
		OrgID: v.member.OrgID, MemberID: v.member.MemberID, Ended: v.member.Ended, SignedOut: signedOut,
		SignedIn: func(ctx context.Context) bool {
			_, err := v.p.SignIn.Session(ctx, token, v.p.Now())
			return !errors.Is(err, &domain.Error{Code: domain.CodeUnauthenticated})
		},
	}
	if !viewer.SignedIn(v.r.Context()) { // it ended before anybody listened
		return domain.ErrNotSignedIn()
	}
	return v.p.Live.Stream(v.w, v.r, viewer, want)
}
