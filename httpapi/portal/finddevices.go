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

const (
	// foundPage is how many channels a page of found devices shows.
	foundPage = 200
	// exportReads is how many times an export reads findPage channels.
	exportReads = 100
)

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
	// Site is the chosen site, "" for all sites, and Room a part of the names of rooms.
	Site    string
	Room    string
	Sites   []domain.Site
	Devices []foundDevice
	// Next is the address of the next page; "" for none.
	Next string
}

// Query returns the query of the search, without the page.
func (v foundView) Query() string {
	query := url.Values{"show": {v.Show}}
	for name, value := range map[string]string{"site": v.Site, "room": v.Room} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return "?" + query.Encode()
}

// Numeric reports whether the values are numbers.
func (v foundView) Numeric() bool {
	return len(v.Devices) > 0 && v.Devices[0].number != nil
}

// foundDevice is a channel, or a device that cannot be reached.
type foundDevice struct {
	Hub           domain.HubID
	DeviceID      int64
	Name, Room    string
	HubName, Site string
	SiteID        string
	Model         string
	// number is the value as a number; nil for others.
	number *float64
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
	view, search, err := req.deviceSearch()
	if err == nil && view.Show != "" {
		var next string
		view.Devices, next, err = req.foundDevices(
			view, search, foundPage, parsePosition(req.queryValue("after")),
		)
		if next != "" {
			view.Next = view.Query() + "&" + url.Values{"after": {next}}.Encode()
		}
	}
	if err != nil {
		return err
	}
	view.Layout = req.layout("Devices", "devices")
	view.Scripts = []string{"livesearch.js"}
	req.render(http.StatusOK, "find-devices.html", view)
	return nil
}

// exportDevices answers with all devices that a search finds, as CSV.
func (req *request) exportDevices() error {
	release, err := req.exports.Take(req.spender(), 1)
	if err != nil {
		return err
	}
	defer release()
	view, search, err := req.deviceSearch()
	if err != nil {
		return err
	}
	if view.Show == "" {
		return errPageNotFound
	}
	var devices []foundDevice
	after := domain.StatePosition{}
	for range exportReads {
		found, next, err := req.foundDevices(view, search, findPage, after)
		if err != nil {
			return err
		}
		devices = append(devices, found...)
		if after = parsePosition(next); next == "" {
			break
		}
	}
	sortFound(devices, search)
	zone := req.zone()
	req.csvHeaders("devices-"+search.Name, zone)
	out := newCSV(req.w)
	_ = out.row( // a write that fails makes the next one fail
		"Device", "Device number", "Model", "Value", "Since ("+zone.String()+")", "Room", "Hub",
		"Hub ID", "Site", "Hub offline since",
	)
	for _, d := range devices {
		if err := out.row(
			d.Name, formatInt(d.DeviceID), d.Model, cmp.Or(d.Value, "out of reach"),
			csvTime(d.Since, zone), d.Room, d.HubName, string(d.Hub), d.Site,
			csvTime(d.OfflineSince, zone),
		); err != nil {
			return nil // the client has gone
		}
	}
	_ = out.flush() // the client has gone
	return nil
}

// csvTime returns a time for spreadsheets, "" for the zero time.
func csvTime(at time.Time, zone *time.Location) string {
	if at.IsZero() {
		return ""
	}
	return at.In(zone).Format("2006-01-02 15:04:05")
}

// deviceSearch returns the page of the address's search, without devices.
func (req *request) deviceSearch() (view foundView, search deviceSearch, err error) {
	view = foundView{
		Searches: deviceSearches, Show: req.queryValue("show"), Site: req.queryValue("site"),
		Room: truncate(req.queryValue("room"), longestSearch),
	}
	sites, err := req.ReadModels.Sites(req.ctx, req.org, maxSites, "")
	view.Sites = sites.Data
	i := slices.IndexFunc(deviceSearches, func(s deviceSearch) bool { return s.Name == view.Show })
	if i < 0 {
		view.Show = ""
		return view, search, err
	}
	return view, deviceSearches[i], err
}

// foundDevices returns the devices that a search finds among at most limit channels, and the
// position of the next ones.
func (req *request) foundDevices(
	view foundView, search deviceSearch, limit int, after domain.StatePosition,
) (devices []foundDevice, next string, err error) {
	states, err := req.hubStates(req.ctx, req.org, "")
	if err != nil {
		return nil, "", err
	}
	hubs := make(map[domain.HubID]hubState, len(states))
	for _, state := range states {
		hubs[state.ID] = state
	}
	found, next, err := req.readFound(view.Site, search, limit, after)
	names := siteNames(view.Sites)
	for _, state := range found {
		device := foundDeviceOf(state, hubs[state.HubID])
		device.Site = names[state.SiteID]
		if !strings.Contains(strings.ToLower(device.Room), strings.ToLower(view.Room)) {
			continue
		}
		if search.Name == "unreachable" {
			if n := len(devices); n > 0 && devices[n-1].Hub == device.Hub &&
				devices[n-1].DeviceID == device.DeviceID {
				continue // another channel of the same device
			}
			device.Value, device.Since, device.number = "", time.Time{}, nil
			if state.AvailableSince != nil {
				device.Since = *state.AvailableSince
			}
		}
		devices = append(devices, device)
	}
	sortFound(devices, search)
	return devices, next, err
}

// sortFound sorts devices by their places; batteries by their levels, the lowest first.
func sortFound(devices []foundDevice, search deviceSearch) {
	level := func(d foundDevice) float64 {
		if d.number == nil || search.filter.Key == nil || *search.filter.Key != "battery" {
			return 0
		}
		return *d.number
	}
	slices.SortStableFunc(devices, func(a, b foundDevice) int {
		return cmp.Or(
			cmp.Compare(level(a), level(b)),
			compareNatural(a.Site, b.Site), compareNatural(a.HubName, b.HubName),
			cmp.Compare(a.Hub, b.Hub), compareNatural(a.Room, b.Room), compareNatural(a.Name, b.Name),
		)
	})
}

// readFound returns one page of what a search finds, and the position of the next page.
func (req *request) readFound(
	site string, search deviceSearch, limit int, after domain.StatePosition,
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
	page, err := req.Reported.States(req.ctx, req.org, filter, limit, after)
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
		Certain: state.Certain, Model: strings.TrimSpace(state.Manufacturer + " " + state.Model),
	}
	if number, err := strconv.ParseFloat(string(state.Channel.Value), 64); err == nil {
		found.number = &number
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
