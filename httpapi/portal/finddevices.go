package portal

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"hubcloud/domain"
	"hubcloud/domain/attention"
)

// foundPage is how many channels a page of found devices shows.
const foundPage = 200

// deviceSearch is what to look for across sites.
type deviceSearch struct {
	// Name stands in the address of the page.
	Name   string
	filter domain.StateFilter
	// low restricts the channels to batteries that need attention.
	low bool
}

// Label returns the text of the choice.
func (s deviceSearch) Label() string { return deviceSearchTexts[s.Name] }

// deviceSearches are the choices of the page.
var deviceSearches = func() []deviceSearch {
	is := func(name, key string, value bool) deviceSearch {
		return deviceSearch{Name: name, filter: domain.StateFilter{Key: &key, Value: &value}}
	}
	all := func(name, key string) deviceSearch {
		return deviceSearch{Name: name, filter: domain.StateFilter{Key: &key}}
	}
	out, failed, battery := false, domain.ChannelFailed, "battery"
	return []deviceSearch{
		is("unlocked", "lock", false), is("locked", "lock", true),
		is("open-doors", "contact", true), is("open-barriers", "barrier", true),
		is("on", "switch", true), is("smoke", "smoke", true), is("leaks", "leak", true),
		{Name: "unreachable", filter: domain.StateFilter{Available: &out}},
		{Name: "low-batteries", filter: domain.StateFilter{Key: &battery}, low: true},
		{Name: "failed", filter: domain.StateFilter{Status: &failed}},
		all("locks", "lock"), all("heating", "heating_setpoint"), all("temperatures", "temperature"),
		all("humidity", "humidity"), all("batteries", "battery"), all("contacts", "contact"),
	}
}()

// foundView is the page that finds devices across sites.
type foundView struct {
	Layout
	Searches []deviceSearch
	// Show is the name of the search, "" before one was chosen.
	Show string
	// Site is the chosen site; "" means all sites.
	Site    string
	Sites   []domain.Site
	Devices []foundDevice
	// Next is the address of the next page; "" for none.
	Next string
}

// foundDevice is a channel, or a device that cannot be reached.
type foundDevice struct {
	Hub           domain.HubID
	DeviceID      int64
	Name, Room    string
	HubName, Site string
	SiteID        string
	// Value is the displayed value; "" for a device that cannot be reached.
	Value string
	// Since is when the value was first reported; zero if it is not known.
	Since time.Time
	// OfflineSince is since when the hub is offline; zero if it is online.
	OfflineSince time.Time
	// Certain reports whether everything that the hub reported of the channel is known.
	Certain bool
}

// findDevices shows the devices of all sites that a search finds. Its address can be shared.
func (req *request) findDevices() error {
	view := foundView{
		Searches: deviceSearches, Show: req.queryValue("show"), Site: req.queryValue("site"),
	}
	sites, err := req.ReadModels.Sites(req.ctx, req.org, maxSites, "")
	if err != nil {
		return err
	}
	view.Sites = sites.Data
	i := slices.IndexFunc(deviceSearches, func(s deviceSearch) bool { return s.Name == view.Show })
	if i < 0 {
		view.Show = ""
	} else if err := req.search(&view, deviceSearches[i]); err != nil {
		return err
	}
	view.Layout = req.layout("Devices", "devices")
	req.render(http.StatusOK, "find-devices.html", view)
	return nil
}

// search fills the page with what a search finds.
func (req *request) search(view *foundView, search deviceSearch) error {
	states, err := req.hubStates(req.ctx, req.org, "")
	if err != nil {
		return err
	}
	hubs := make(map[domain.HubID]hubState, len(states))
	for _, state := range states {
		hubs[state.ID] = state
	}
	found, next, err := req.readFound(view.Site, search)
	if err != nil {
		return err
	}
	if next != "" {
		view.Next = "?" + url.Values{
			"show": {view.Show}, "site": {view.Site}, "after": {next},
		}.Encode()
	}
	names := siteNames(view.Sites)
	for _, state := range found {
		device := foundDeviceOf(state, hubs[state.HubID])
		device.Site = names[state.SiteID]
		if search.Name == "unreachable" {
			if n := len(view.Devices); n > 0 && view.Devices[n-1].Hub == device.Hub &&
				view.Devices[n-1].DeviceID == device.DeviceID {
				continue // another channel of the same device
			}
			device.Value, device.Since = "", time.Time{}
			if state.AvailableSince != nil {
				device.Since = *state.AvailableSince
			}
		}
		view.Devices = append(view.Devices, device)
	}
	slices.SortStableFunc(view.Devices, func(a, b foundDevice) int {
		return cmp.Or(
			compareNatural(a.Site, b.Site), compareNatural(a.HubName, b.HubName),
			cmp.Compare(a.Hub, b.Hub), compareNatural(a.Room, b.Room), compareNatural(a.Name, b.Name),
		)
	})
	return nil
}

// readFound returns one page of what a search finds, and the position of the next page.
func (req *request) readFound(
	site string, search deviceSearch,
) (found []domain.ReportedState, next string, err error) {
	if search.low {
		all, err := req.Reported.StatesNeedingAttention(req.ctx, req.org, site, "")
		for _, state := range all {
			charge, parseErr := strconv.ParseFloat(string(state.Channel.Value), 64)
			if state.Channel.Key == *search.filter.Key && parseErr == nil &&
				charge < attention.LowBattery {
				found = append(found, state)
			}
		}
		return found, "", err
	}
	filter := search.filter
	if site != "" {
		filter.SiteID = &site
	}
	page, err := req.Reported.States(
		req.ctx, req.org, filter, foundPage, parsePosition(req.queryValue("after")),
	)
	if err == nil && page.HasMore {
		next = formatPosition(page.Next)
	}
	return page.Data, next, err
}

// foundDeviceOf returns the row of a channel.
func foundDeviceOf(state domain.ReportedState, hub hubState) foundDevice {
	device := attention.Devices([]domain.ReportedState{state})[0]
	found := foundDevice{
		Hub: state.HubID, DeviceID: state.DeviceID, Name: device.Name, Room: device.Room,
		HubName: cmp.Or(hub.Name, string(state.HubID)), SiteID: state.SiteID,
		Value:   formatReported(state.Channel),
		Certain: state.Certain,
	}
	if state.ChangedAt != nil {
		found.Since = *state.ChangedAt
	}
	if state.HubStatus == domain.HubOffline {
		found.OfflineSince = state.HubSince
	}
	return found
}

// formatPosition returns a position in lists of channels, for an address.
func formatPosition(position domain.StatePosition) string {
	text, err := json.Marshal(position)
	if err != nil {
		return ""
	}
	return string(text)
}

// parsePosition returns the position of formatPosition, the first for any other text.
func parsePosition(text string) (position domain.StatePosition) {
	decoder := json.NewDecoder(strings.NewReader(text))
	if decoder.Decode(&position) != nil {
		return domain.StatePosition{}
	}
	return position
}

// deviceSearchTexts are the choices of the page that finds devices, by name.
var deviceSearchTexts = map[string]string{
	"unlocked":      "Unlocked doors",
	"locked":        "Locked doors",
	"open-doors":    "Open doors and windows",
	"open-barriers": "Open barriers",
	"on":            "Switches that are on",
	"smoke":         "Smoke",
	"leaks":         "Water leaks",
	"unreachable":   "Not reachable",
	"low-batteries": "Batteries below 20 %",
	"failed":        "Commands that failed",
	"locks":         "All locks",
	"heating":       "All heating setpoints",
	"temperatures":  "All temperatures",
	"humidity":      "All humidity sensors",
	"batteries":     "All batteries",
	"contacts":      "All door and window contacts",
}
