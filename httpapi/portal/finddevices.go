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
	// Name stands in the address of the page, and Label is the text of the choice.
	Name, Label string
	filter      domain.StateFilter
	// low restricts the channels to batteries that need attention.
	low bool
}

// deviceSearches are the choices of the page.
var deviceSearches = func() []deviceSearch {
	is := func(name, label, key string, value bool) deviceSearch {
		return deviceSearch{name, label, domain.StateFilter{Key: &key, Value: &value}, false}
	}
	all := func(name, label, key string) deviceSearch {
		return deviceSearch{name, label, domain.StateFilter{Key: &key}, false}
	}
	out, failed, battery := false, domain.ChannelFailed, "battery"
	return []deviceSearch{
		is("unlocked", "Unlocked doors", "lock", false),
		is("locked", "Locked doors", "lock", true),
		is("open-doors", "Open doors and windows", "contact", true),
		is("open-barriers", "Open barriers", "barrier", true),
		is("on", "Switches that are on", "switch", true),
		is("smoke", "Smoke", "smoke", true), is("leaks", "Water leaks", "leak", true),
		{"unreachable", "Not reachable", domain.StateFilter{Available: &out}, false},
		{"low-batteries", "Batteries below 20 %", domain.StateFilter{Key: &battery}, true},
		{"failed", "Commands that failed", domain.StateFilter{Status: &failed}, false},
		all("heating", "All heating setpoints", "heating_setpoint"),
		all("temperatures", "All temperatures", "temperature"),
		all("humidity", "All humidity sensors", "humidity"),
		all("batteries", "All batteries", "battery"),
	}
}()

// foundView is the page that finds devices across sites.
type foundView struct {
	Layout
	Searches []deviceSearch
	// Show is the name of the search, "" for all devices. Find are words that a device and its place
	// have, and Kind is one of Kinds, "" for all.
	Show, Find, Kind string
	Kinds            []string
	// Site is the chosen site, "" for all sites, and Room a room, or a part of the names of rooms.
	Site    string
	Room    string
	Sites   []domain.Site
	Devices []foundDevice
	// Rooms are the rooms of these devices, and Actions what can be done with several of them.
	Rooms   []string
	Actions []groupAction
	// Problem is why an action on the devices was rejected.
	Problem string
	// known are the devices that have the words.
	known []domain.FoundDevice
	// Next is the address of the next page; "" for none.
	Next string
}

// Query returns the query of the search, without the page.
func (v foundView) Query() string {
	query := url.Values{}
	for name, value := range map[string]string{
		"show": v.Show, "site": v.Site, "room": v.Room, "find": v.Find, "kind": v.Kind,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if len(query) == 0 {
		return ""
	}
	return "?" + query.Encode()
}

// WithBatteries reports whether the page is a list of batteries.
func (v foundView) WithBatteries() bool { return v.Show == "batteries" || v.Show == "low-batteries" }

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
	// Battery is the type of the device's batteries, "" if its model does not tell it.
	Battery string
	// number is the value as a number; nil for others.
	number *float64
	// Value is the displayed value, and Tag the class of its tag; "" for none.
	Value, Tag string
	// Since is when the value was first reported; zero if it is not known.
	Since time.Time
	// OfflineSince is since when the hub is offline; zero if it is online.
	OfflineSince time.Time
	// OutOfReach reports that the hub cannot reach the device, since Since.
	OutOfReach bool
	// Certain reports whether everything that the hub reported of the channel is known.
	Certain bool
}

// findDevices shows the devices of all sites that a search finds. Its address can be shared.
func (req *request) findDevices() error { return req.showDevices(http.StatusOK, "") }

func (req *request) showDevices(status int, problem string) error {
	view, search, err := req.deviceSearch()
	if err != nil {
		return err
	}
	var next string
	view.Devices, next, err = req.foundDevices(
		view, search, foundPage, parsePosition(req.queryValue("after")),
	)
	if err != nil {
		return err
	}
	if next != "" {
		view.Next = cmp.Or(view.Query(), "?") + "&" + url.Values{"after": {next}}.Encode()
	}
	for _, d := range view.known {
		view.Rooms = append(view.Rooms, d.Room)
	}
	slices.SortFunc(view.Rooms, compareNatural)
	view.Rooms = slices.DeleteFunc(slices.Compact(view.Rooms), func(r string) bool { return r == "" })
	view.Actions, view.Problem = groupActions, problem
	view.Layout = req.layout("Devices", "devices")
	view.Scripts = []string{"livesearch.js"}
	req.render(status, "find-devices.html", view)
	return nil
}

// deviceSearch returns the page of the address's search, without devices.
func (req *request) deviceSearch() (view foundView, search deviceSearch, err error) {
	view = foundView{
		Searches: deviceSearches, Show: req.queryValue("show"), Site: req.queryValue("site"),
		Room:  truncate(req.queryValue("room"), longestSearch),
		Find:  truncate(req.queryValue("find"), longestSearch),
		Kinds: deviceKinds,
	}
	if kind := req.queryValue("kind"); slices.Contains(deviceKinds, kind) {
		view.Kind = kind
	}
	if view.Sites, err = req.allSites(); err != nil {
		return view, search, err
	}
	if view.known, err = req.Reported.FindDevices(
		req.ctx, req.org, view.Find, mainChannels, maxFoundDevices,
	); err != nil {
		return view, search, err
	}
	i := slices.IndexFunc(deviceSearches, func(s deviceSearch) bool { return s.Name == view.Show })
	if i < 0 {
		view.Show = ""
		return view, search, nil
	}
	return view, deviceSearches[i], nil
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
	names, known := siteNames(view.Sites), view.knownDevices()
	if view.Show == "" {
		devices, next = req.allDevices(view, hubs, names, limit, after)
		return devices, next, req.markOutOfReach(view.Site, devices)
	}
	found, next, err := req.readFound(view.Site, search, limit, after)
	for _, state := range found {
		device := foundDeviceOf(state, hubs[state.HubID])
		device.Site = names[state.SiteID]
		if view.Find+view.Room+view.Kind != "" && !known[device.key()] {
			continue
		}
		if search.Name == "unreachable" {
			if n := len(devices); n > 0 && devices[n-1].Hub == device.Hub &&
				devices[n-1].DeviceID == device.DeviceID {
				continue // another channel of the same device
			}
			device.OutOfReach, device.Since, device.number = true, time.Time{}, nil
			if state.AvailableSince != nil {
				device.Since = *state.AvailableSince
			}
		}
		devices = append(devices, device)
	}
	sortFound(devices, search)
	return devices, next, err
}

// markOutOfReach marks which devices of a site, or of all, their hubs cannot reach.
func (req *request) markOutOfReach(site string, devices []foundDevice) error {
	unreachable := deviceSearches[slices.IndexFunc(deviceSearches, func(s deviceSearch) bool {
		return s.Name == "unreachable"
	})]
	since := map[deviceKey]*time.Time{}
	after := domain.StatePosition{}
	for range exportReads {
		out, next, err := req.readFound(site, unreachable, findPage, after)
		if err != nil {
			return err
		}
		for _, state := range out {
			since[deviceKey{state.HubID, state.DeviceID}] = state.AvailableSince
		}
		if after = parsePosition(next); next == "" {
			break
		}
	}
	for i, d := range devices {
		at, ok := since[d.key()]
		if devices[i].OutOfReach = ok; at != nil {
			devices[i].Since = *at
		}
	}
	return nil
}

// deviceKey identifies a device.
type deviceKey struct {
	hub    domain.HubID
	device int64
}

// Field returns the device as a value of a form.
func (d foundDevice) Field() string { return deviceField(d.Hub, d.DeviceID) }

func (d foundDevice) key() deviceKey { return deviceKey{d.Hub, d.DeviceID} }

// knownDevices returns the devices of the kind that have the words and are in the room. A text that
// is the name of no room stands for all rooms with the text in their names.
func (v foundView) knownDevices() map[deviceKey]bool {
	room := strings.ToLower(v.Room)
	whole := slices.ContainsFunc(v.known, func(d domain.FoundDevice) bool {
		return strings.ToLower(d.Room) == room
	})
	known := make(map[deviceKey]bool, len(v.known))
	for _, d := range v.known {
		in := strings.ToLower(d.Room)
		isIn := room == "" || in == room || !whole && strings.Contains(in, room)
		if isIn && (v.Kind == "" || kindOf(d.Key) == v.Kind) {
			known[deviceKey{d.HubID, d.DeviceID}] = true
		}
	}
	return known
}

// allDevices returns at most limit devices whatever they report, in the order of sortFound, and the
// position of the next ones.
func (req *request) allDevices(
	view foundView, hubs map[domain.HubID]hubState, sites map[string]string, limit int,
	after domain.StatePosition,
) (devices []foundDevice, next string) {
	known := view.knownDevices()
	for _, d := range view.known {
		hub := hubs[d.HubID]
		if !known[deviceKey{d.HubID, d.DeviceID}] || view.Site != "" && hub.SiteID != view.Site {
			continue
		}
		found := foundDevice{
			Hub: d.HubID, DeviceID: d.DeviceID, Room: d.Room, SiteID: hub.SiteID, Certain: true,
			Name: cmp.Or(d.Name, deviceNumber(d.DeviceID)), Site: sites[hub.SiteID],
			HubName: cmp.Or(hub.Name, string(d.HubID)), Model: modelText(d.Manufacturer, d.Model),
			Battery: batteryType(d.Model), Value: formatValue(d.Key, d.Unit, d.Value),
			Tag: stateTag(d.Key, string(d.Value)),
		}
		if d.ChangedAt != nil {
			found.Since = *d.ChangedAt
		}
		if hub.Status == domain.HubOffline {
			found.OfflineSince = hub.Since
		}
		devices = append(devices, found)
	}
	sortFound(devices, deviceSearch{})
	first := slices.IndexFunc(devices, func(d foundDevice) bool {
		return d.key() == deviceKey{after.HubID, after.DeviceID}
	}) + 1
	devices = devices[first:]
	if len(devices) > limit {
		devices = devices[:limit]
		last := devices[limit-1]
		next = formatPosition(domain.StatePosition{HubID: last.Hub, DeviceID: last.DeviceID})
	}
	return devices, next
}

// modelText returns the manufacturer and the model of a device.
func modelText(manufacturer, model string) string {
	return strings.TrimSpace(manufacturer + " " + model)
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
	page, err := req.Reported.States(req.ctx, domain.Reach{OrgID: req.org}, filter, limit, after)
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
		Certain: state.Certain, Model: modelText(state.Manufacturer, state.Model),
		Battery: batteryType(state.Model),
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
