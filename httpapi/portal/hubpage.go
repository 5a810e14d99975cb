package portal

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"hubcloud/domain"
)

// hubNetwork is the network of a hub as the contract defines it.
type hubNetwork struct {
	Type        string    `json:"type"`
	Interface   string    `json:"interface"`
	IPAddress   *string   `json:"ip_address"`
	IPv6Address *string   `json:"ipv6_address"`
	MACAddress  *string   `json:"mac_address"`
	SSID        *string   `json:"ssid"`
	SignalDBM   *int      `json:"signal_dbm"`
	Carrier     *string   `json:"carrier"`
	Radio       *string   `json:"radio"`
	Metered     bool      `json:"metered"`
	ReportedAt  time.Time `json:"reported_at"`
}

// hubHead is the head of every page about a hub.
type hubHead struct {
	Layout
	Hub   hubState
	Title string
	// Site is the name of the hub's site.
	Site string
}

type hubView struct {
	hubHead
	// Sites are where the hub could be.
	Sites    []domain.Site
	Added    time.Time
	PublicIP *string
	Firmware string
	Network  *hubNetwork
	Devices  devicesView
	// Attention is what needs attention at the hub and its devices.
	Attention attentionView
	// Problems are what the hub does wrong.
	Problems []hubProblem
	// Pairing and Removal are when a window that was opened from this page closes; zero for none.
	Pairing, Removal time.Time
	Rejected         rejectedForm
	Data             scriptData
}

// firstAnswerTimeout is how long a hub's page waits for the hub. If the hub takes longer, the page
// is shown without devices and its script asks for them.
const firstAnswerTimeout = 600 * time.Millisecond

// Left returns the seconds left until a time.
func (v hubView) Left(until time.Time) int { return int(until.Sub(v.Now) / time.Second) }

// devicesView is the part of a hub's page with its devices.
type devicesView struct {
	Layout
	Hub  domain.HubID
	List deviceList
	// Find is the text that the devices must contain.
	Find string
	// Failure is why the devices are missing; "" if they are not. Offline reports whether the
	// reason is that the hub is offline; Failure is empty then.
	Failure string
	Offline bool
}

// hubPage shows a hub and its devices.
func (req *request) hubPage() error {
	return req.showHub(http.StatusOK, rejectedForm{})
}

// showHub shows the page of a hub, with a rejected form if there is one. If the hub does not
// answer, the page is shown without devices.
func (req *request) showHub(status int, rejected rejectedForm) error {
	hub, err := req.ReadModels.Hub(req.ctx, req.org, req.hub)
	if err != nil {
		return err
	}
	head, err := req.hubHead("")
	if err != nil {
		return err
	}
	view := hubView{
		hubHead:  head,
		Added:    hub.AddedAt,
		PublicIP: hub.PublicIP,
		Rejected: rejected,
	}
	view.Scripts = []string{"hub.js"}
	view.Data = req.scriptData(view.Layout, "", req.hub)
	if view.Sites, err = req.allSites(); err != nil {
		return err
	}
	var firmware struct{ Version string }
	if json.Unmarshal(hub.Firmware, &firmware) == nil {
		view.Firmware = firmware.Version
	}
	if len(hub.Network) > 0 && json.Unmarshal(hub.Network, &view.Network) != nil {
		view.Network = nil // malformed
	}
	view.Problems = req.hubProblems(hub)
	view.Attention, err = req.needsAttention(
		view.Layout, []hubState{view.Hub}, siteNames(view.Sites), "", req.hub,
	)
	if err != nil {
		return err
	}
	view.Pairing, view.Removal = req.openUntil("pairing"), req.openUntil("removal")
	timeout := firstAnswerTimeout
	if req.http.URL.Query().Has("wait") { // the link for browsers without scripts
		timeout = 0
	}
	if view.Devices, err = req.askDevices(view.Layout, req.hub, timeout); err != nil {
		return err
	}
	req.render(status, "hub.html", view)
	return nil
}

// hubHead returns the head of a page about a hub. topic is the page's topic, "" on the hub's main
// page.
func (req *request) hubHead(topic string) (hubHead, error) {
	states, err := req.hubStates(req.ctx, req.org, req.hub)
	if err != nil {
		return hubHead{}, err
	}
	site, err := req.ReadModels.Site(req.ctx, req.org, states[0].SiteID)
	if err != nil {
		return hubHead{}, err
	}
	head := hubHead{Hub: states[0], Title: states[0].Name, Site: site.Name}
	if head.Title == "" {
		head.Title = string(req.hub)
	}
	req.hubTitle, req.hubSite = domain.PlainLine(head.Title), domain.PlainLine(head.Site)
	heading := head.Title
	if topic != "" {
		heading = topic + " · " + heading
	}
	head.Layout = req.layout(heading, "sites")
	head.Inner = true
	return head, nil
}

// devices answers with the list of a hub's devices, for the page's script.
func (req *request) devices() error {
	view, err := req.askDevices(req.fragment(2), req.hub, 0)
	if err != nil {
		return err
	}
	req.render(http.StatusOK, "devices", view)
	return nil
}

// askDevices asks a hub for its devices, filtered and paged by the query parameters find and page,
// and waits at most timeout; 0 means the hub's own timeout.
func (req *request) askDevices(
	layout Layout, hub domain.HubID, timeout time.Duration,
) (devicesView, error) {
	query := req.http.URL.Query()
	view := devicesView{Layout: layout, Hub: hub, Find: strings.TrimSpace(query.Get("find"))}
	page, _ := strconv.Atoi(query.Get("page")) // 0, the first page, if there is none
	var err error
	view.List, err = req.listDevices(
		req.ctx, req.org, hub,
		devicesRequest{Find: view.Find, Page: page - 1, Timeout: timeout},
	)
	if err != nil {
		switch code := domain.CodeOf(err); code {
		case domain.CodeHubOffline:
			view.Offline = true
		case domain.CodeHubUnavailable, domain.CodeHubTimeout, domain.CodeHubError:
			view.Failure, _ = rejectionText(err)
		default:
			return view, err
		}
		view.List, err = req.lastDeviceList(
			req.ctx, req.org, hub,
			devicesRequest{Find: view.Find, Page: page - 1},
		)
	}
	return view, err
}

// Pages returns the links to the pages of devices; nil for a single page.
func (v devicesView) Pages() []pageLink {
	return pageLinks(v.List.Page, v.List.Pages, url.Values{"find": {v.Find}})
}

// writeNames answers with the names of a hub's devices and the units of their channels, for
// scripts, which keep them: the hub is asked, since a new device may not be among what it reported
// last.
func (req *request) writeNames() error {
	devices, err := req.lastDevices(req.ctx, req.org, req.hub)
	if listed, failed := req.Devices.List(req.ctx, req.hub); failed == nil {
		devices, err = nil, nil
		for _, d := range listed {
			devices = append(devices, deviceOf(req.hub, d, domain.DeviceLabel{}))
		}
	}
	if err != nil {
		return err
	}
	names, err := req.infosOf(req.ctx, req.org, req.hub, devices)
	if err != nil {
		return err
	}
	req.w.Header().Set("Content-Type", "application/json")
	req.w.Header().Set("Cache-Control", "no-store")
	req.w.Header().Set("X-Content-Type-Options", "nosniff")
	body, err := json.Marshal(names)
	if err != nil {
		return err
	}
	_, _ = req.w.Write(domain.PlainPage(body)) // the client has gone
	return nil
}

// fragment returns the layout of a part of a page, which a script inserts into its page. The part's
// relative links must fit the page: up is the depth of the page below /portal/. The query parameter
// up overrides it, because the page of a rejected form is deeper.
func (req *request) fragment(up int) Layout {
	if depth, err := strconv.Atoi(req.http.URL.Query().Get("up")); err == nil && depth > 0 &&
		depth < 10 {
		up = depth
	}
	return Layout{
		Root: strings.Repeat(
			"../", up,
		), Email: req.session.Email, FormToken: maskToken(req.session.FormToken), Member: req.member,
		ViewOnly:  req.mayOnlyLook(),
		Now:       req.info.At.In(req.zone()),
		RequestID: req.info.RequestID,
	}
}

// openUntil returns when a window closes, from the query parameter with the window's name: a
// redirect after opening the window sets it. It returns zero if the window is not open.
func (req *request) openUntil(name string) time.Time {
	seconds, err := strconv.ParseInt(req.http.URL.Query().Get(name), 10, 64)
	until := time.Unix(seconds, 0)
	if err != nil || !until.After(req.info.At) || until.After(req.info.At.Add(time.Hour)) {
		return time.Time{}
	}
	return until
}
