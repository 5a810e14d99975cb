package portal

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/portal/live"
)

// hubNetwork is the contract's network of a hub, as pages show it.
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

// hubHead is what every page of a hub shows of it.
type hubHead struct {
	Layout
	Hub   live.HubState
	Title string
}

type hubView struct {
	hubHead
	Site string
	// Sites are where the hub could be.
	Sites    []domain.Site
	Added    time.Time
	PublicIP *string
	Firmware string
	Network  *hubNetwork
	Devices  devicesView
	// Pairing and Removal are until when a window that was opened from here is open; zero: none
	// was.
	Pairing, Removal time.Time
	Rejected         rejectedForm
	Data             scriptData
}

// firstAnswerTimeout is how long a hub's page waits for the hub: one that takes longer is shown
// without its devices, for which its script then asks.
const firstAnswerTimeout = 600 * time.Millisecond

// Left is how many seconds there are left until a time.
func (v hubView) Left(until time.Time) int { return int(until.Sub(v.Now) / time.Second) }

// devicesView is the part of a hub's page that shows its devices.
type devicesView struct {
	Layout
	Hub  domain.HubID
	List live.DeviceList
	// Find is what somebody looks for among them.
	Find string
	// Failure says why there are no devices to show; Offline that it is because the hub is not
	// connected.
	Failure string
	Offline bool
}

// hubPage shows a hub and its devices.
func (req *request) hubPage(id domain.HubID) error {
	return req.showHub(http.StatusOK, id, rejectedForm{})
}

// showHub shows a hub's page, and what was refused of it. When the hub does not answer, the rest is
// there all the same.
func (req *request) showHub(status int, id domain.HubID, refused rejectedForm) error {
	ctx := req.http.Context()
	hub, err := req.portal.ReadModels.Hub(ctx, req.member.OrgID, id)
	if err != nil {
		return err
	}
	head, err := req.hubHead(id, "")
	if err != nil {
		return err
	}
	view := hubView{
		hubHead:  head,
		Added:    hub.RegisteredAt,
		PublicIP: hub.PublicIP,
		Rejected: refused,
	}
	view.Scripts = []string{"hub.js"}
	view.Data = req.scriptData(view.Layout, id)
	sites, err := req.portal.ReadModels.Sites(ctx, req.member.OrgID, maxSites, "")
	if err != nil {
		return err
	}
	view.Sites = sites.Data
	for _, site := range sites.Data {
		if site.ID == hub.SiteID {
			view.Site = site.Name
		}
	}
	var firmware struct{ Version string }
	if json.Unmarshal(hub.Firmware, &firmware) == nil {
		view.Firmware = firmware.Version
	}
	if len(hub.Network) > 0 && json.Unmarshal(hub.Network, &view.Network) != nil {
		view.Network = nil // one that cannot be read is none
	}
	view.Pairing, view.Removal = req.openUntil("pairing"), req.openUntil("removal")
	within := firstAnswerTimeout
	if req.http.URL.Query().Has("wait") { // for those without scripts
		within = 0
	}
	if view.Devices, err = req.askDevices(view.Layout, id, within); err != nil {
		return err
	}
	req.render(status, "hub.html", view)
	return nil
}

// hubHead makes the head of a page of a hub; under is what the page is about beside the hub, "" for
// the hub itself.
func (req *request) hubHead(id domain.HubID, under string) (hubHead, error) {
	states, err := req.portal.Live.States(req.http.Context(), req.member.OrgID, id)
	if err != nil {
		return hubHead{}, err
	}
	head := hubHead{Hub: states[0], Title: states[0].Name}
	if head.Title == "" {
		head.Title = string(id)
	}
	heading := head.Title
	if under != "" {
		heading = under + " · " + heading
	}
	head.Layout = req.layout(heading, "dashboard")
	return head, nil
}

// devices answers with the part of the hub's page that shows its devices, for the page's script.
func (req *request) devices(hub domain.HubID) error {
	view, err := req.askDevices(req.fragment(2), hub, 0)
	if err != nil {
		return err
	}
	// Its links are written as the page has them, which is one step up.
	req.render(http.StatusOK, "devices", view)
	return nil
}

// devicesOf asks a hub for the devices that the address wants: find is what somebody looks for,
// page counts from 1.
func (req *request) askDevices(
	shell Layout, hub domain.HubID, within time.Duration,
) (devicesView, error) {
	query := req.http.URL.Query()
	view := devicesView{Layout: shell, Hub: hub, Find: strings.TrimSpace(query.Get("find"))}
	page, _ := strconv.Atoi(query.Get("page")) // none is the first
	var err error
	view.List, err = req.portal.Live.ListDevices(
		req.http.Context(), req.member.OrgID, hub,
		live.DevicesRequest{Find: view.Find, Page: page - 1, Timeout: within},
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
	}
	return view, nil
}

// Pages are the ways to the pages of devices; none when one page has all.
func (v devicesView) Pages() []pageLink {
	return pageLinks(v.List.Page, v.List.Pages, url.Values{"find": {v.Find}})
}

// deviceNames answers with what the devices of a hub are called, for pages' scripts.
func (req *request) deviceNames(hub domain.HubID) error {
	names, err := req.portal.Live.DeviceNames(req.http.Context(), req.member.OrgID, hub)
	if err != nil {
		return err
	}
	req.w.Header().Set("Content-Type", "application/json")
	req.w.Header().Set("Cache-Control", "no-store")
	req.w.Header().Set("X-Content-Type-Options", "nosniff")
	return json.NewEncoder(req.w).Encode(names)
}

// fragment is the frame of a part of a page, which the script puts into its page. Its links must
// fit there: up says how many steps below /portal/ that is, which the page of a refused form has
// more of.
func (req *request) fragment(up int) Layout {
	if asked, err := strconv.Atoi(req.http.URL.Query().Get("up")); err == nil && asked > 0 &&
		asked < 10 {
		up = asked
	}
	return Layout{
		Root: strings.Repeat(
			"../", up,
		), Email: req.session.Email, FormToken: req.session.FormToken, Member: req.member,
		Now:       req.info.At,
		RequestID: req.info.RequestID,
	}
}

// windowOf gives until when a window is open, as the address has it: only pages that were sent
// there by its opening say so.
func (req *request) openUntil(name string) time.Time {
	seconds, err := strconv.ParseInt(req.http.URL.Query().Get(name), 10, 64)
	until := time.Unix(seconds, 0)
	if err != nil || !until.After(req.info.At) || until.After(req.info.At.Add(time.Hour)) {
		return time.Time{}
	}
	return until
}
