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
	Shell
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
	Refused          refusedForm
	Data             liveData
}

// firstLook is how long a hub's page waits for the hub: one that takes longer is shown without its
// devices, for which its script then asks.
const firstLook = 600 * time.Millisecond

// Left is how many seconds there are left until a time.
func (v hubView) Left(until time.Time) int { return int(until.Sub(v.Now) / time.Second) }

// devicesView is the part of a hub's page that shows its devices.
type devicesView struct {
	Shell
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
func (v *visit) hubPage(id domain.HubID) error {
	return v.showHub(http.StatusOK, id, refusedForm{})
}

// showHub shows a hub's page, and what was refused of it. When the hub does not answer, the rest is
// there all the same.
func (v *visit) showHub(status int, id domain.HubID, refused refusedForm) error {
	ctx := v.r.Context()
	hub, err := v.p.ReadModels.Hub(ctx, v.member.OrgID, id)
	if err != nil {
		return err
	}
	head, err := v.hubHead(id, "")
	if err != nil {
		return err
	}
	view := hubView{
		hubHead:  head,
		Added:    hub.RegisteredAt,
		PublicIP: hub.PublicIP,
		Refused:  refused,
	}
	view.Scripts = []string{"hub.js"}
	view.Data = v.liveData(view.Shell, id)
	sites, err := v.p.ReadModels.Sites(ctx, v.member.OrgID, maxSites, "")
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
	view.Pairing, view.Removal = v.windowOf("pairing"), v.windowOf("removal")
	within := firstLook
	if v.r.URL.Query().Has("wait") { // for those without scripts
		within = 0
	}
	if view.Devices, err = v.devicesOf(view.Shell, id, within); err != nil {
		return err
	}
	v.render(status, "hub.html", view)
	return nil
}

// hubHead makes the head of a page of a hub; under is what the page is about beside the hub, "" for
// the hub itself.
func (v *visit) hubHead(id domain.HubID, under string) (hubHead, error) {
	states, err := v.p.Live.States(v.r.Context(), v.member.OrgID, id)
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
	head.Shell = v.shell(heading, "dashboard")
	return head, nil
}

// devices answers with the part of the hub's page that shows its devices, for the page's script.
func (v *visit) devices(hub domain.HubID) error {
	view, err := v.devicesOf(v.fragment(2), hub, 0)
	if err != nil {
		return err
	}
	// Its links are written as the page has them, which is one step up.
	v.render(http.StatusOK, "devices", view)
	return nil
}

// devicesOf asks a hub for the devices that the address wants: find is what somebody looks for,
// page counts from 1.
func (v *visit) devicesOf(
	shell Shell, hub domain.HubID, within time.Duration,
) (devicesView, error) {
	query := v.r.URL.Query()
	view := devicesView{Shell: shell, Hub: hub, Find: strings.TrimSpace(query.Get("find"))}
	page, _ := strconv.Atoi(query.Get("page")) // none is the first
	var err error
	view.List, err = v.p.Live.DevicesOf(
		v.r.Context(), v.member.OrgID, hub,
		live.DevicesRequest{Find: view.Find, Page: page - 1, Within: within},
	)
	if err != nil {
		switch code := domain.CodeOf(err); code {
		case domain.CodeHubOffline:
			view.Offline = true
		case domain.CodeHubUnavailable, domain.CodeHubTimeout, domain.CodeHubError:
			view.Failure, _ = refusalText(err)
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
func (v *visit) deviceNames(hub domain.HubID) error {
	names, err := v.p.Live.DeviceNames(v.r.Context(), v.member.OrgID, hub)
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "application/json")
	v.w.Header().Set("Cache-Control", "no-store")
	v.w.Header().Set("X-Content-Type-Options", "nosniff")
	return json.NewEncoder(v.w).Encode(names)
}

// fragment is the frame of a part of a page, which the script puts into its page. Its links must
// fit there: up says how many steps below /portal/ that is, which the page of a refused form has
// more of.
func (v *visit) fragment(up int) Shell {
	if asked, err := strconv.Atoi(v.r.URL.Query().Get("up")); err == nil && asked > 0 &&
		asked < 10 {
		up = asked
	}
	return Shell{
		Root: strings.Repeat(
			"../", up,
		), Email: v.session.Email, FormToken: v.session.FormToken, Member: v.member, Now: v.caller.At,
		RequestID: v.caller.RequestID,
	}
}

// windowOf gives until when a window is open, as the address has it: only pages that were sent
// there by its opening say so.
func (v *visit) windowOf(name string) time.Time {
	seconds, err := strconv.ParseInt(v.r.URL.Query().Get(name), 10, 64)
	until := time.Unix(seconds, 0)
	if err != nil || !until.After(v.caller.At) || until.After(v.caller.At.Add(time.Hour)) {
		return time.Time{}
	}
	return until
}
