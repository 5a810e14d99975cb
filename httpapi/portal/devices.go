package portal

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
)

const (
	// devicesPage is how many devices a page shows.
	devicesPage = 60
	// concurrentDevices is how many devices of a page are requested from the hub at once.
	concurrentDevices = 8
	// devicesTimeout bounds the requests of a page together: a page without some values is better
	// than a slow page.
	devicesTimeout = 15 * time.Second
)

// devicesRequest selects the devices of a hub that a page shows.
type devicesRequest struct {
	// Find selects devices with this text in their name, room, manufacturer, model or number. ""
	// selects all devices.
	Find string
	// Page is the number of the page, from 0.
	Page int
	// Timeout is how long to wait for the hub, at most 15 s. Defaults to 15 s.
	Timeout time.Duration
}

// deviceList is a page of a hub's devices.
type deviceList struct {
	// Rooms are in the order of their names; the devices without a room come last.
	Rooms []deviceRoom
	// Total is how many devices the hub has. Found is how many of them were selected, on Pages
	// pages. Page is the number of this page, from 0.
	Total, Found, Page, Pages int
	// Late reports that the hub did not answer all requests in time.
	Late bool
}

// deviceRoom is a room with its devices. Devices without a room are in the room "".
type deviceRoom struct {
	Name    string
	Devices []hubDevice
}

// hubDevice is a device for display.
type hubDevice struct {
	Hub  domain.HubID
	ID   int64
	Name string
	// Reported is the name that the hub reports. Name is the name that a member set, or Reported.
	Reported     string
	Manufacturer string
	Model        string
	// Room is the room that a member set, "" for none.
	Room string
	// Available reports whether the hub reaches all channels of the device.
	Available bool
	Channels  []deviceChannel
	// Failure is the displayed reason why the device has no channels. Empty if the hub answered.
	Failure string
}

// deviceChannel is a channel of a device for display.
type deviceChannel struct {
	Hub      domain.HubID
	DeviceID int64
	Key      string
	Endpoint int64
	// Label is the displayed name.
	Label string
	// Text is the displayed value, with its unit.
	Text string
	Unit string
	// Value is the JSON of the value reported last, Desired the JSON of the last command's. Both
	// are "null" for none.
	Value   string
	Desired string
	// DesiredText is the displayed Desired, empty for none.
	DesiredText string
	Status      domain.ChannelStatus
	// StatusTag and StatusText explain Status; empty if there is nothing to explain.
	StatusTag, StatusText string
	// WakesAt is when a device that sleeps is expected to wake, and to do a pending command; zero
	// for others.
	WakesAt time.Time
	// ObservedAt is when Value was reported, zero if it was not.
	ObservedAt time.Time
	Available  bool
	// Old reports that Value is the last known one: the hub does not answer.
	Old bool
	// Control is the zero Control for a channel that cannot be set.
	Control control
}

// listDevices asks a hub for its devices, and for the values of the devices of a page. A device
// whose values the hub does not return has a Failure. The error comes from the read models or from
// the hub's list.
func (p *Portal) listDevices(
	ctx context.Context, org string, hub domain.HubID, request devicesRequest,
) (deviceList, error) {
	labels, err := p.ReadModels.DeviceLabels(ctx, org, hub)
	if err != nil {
		return deviceList{}, err
	}
	timeout := min(cmp.Or(request.Timeout, devicesTimeout), devicesTimeout)
	hubCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	listed, err := p.Devices.List(hubCtx, hub)
	if err != nil {
		if hubCtx.Err() != nil && ctx.Err() == nil {
			return deviceList{Late: true}, nil
		}
		return deviceList{}, err
	}
	all := make([]hubDevice, len(listed))
	for i, d := range listed {
		all[i] = deviceOf(hub, d, labels[d.ID])
	}
	list, devices := selectDevices(all, request)
	var requests errgroup.Group
	requests.SetLimit(concurrentDevices)
	for i, d := range devices {
		requests.Go(func() error {
			full, err := p.Devices.Get(hubCtx, hub, d.ID)
			if err != nil {
				devices[i].Failure = "The hub did not return the values of this device."
				return nil
			}
			devices[i] = deviceOf(hub, full, labels[d.ID])
			return nil
		})
	}
	_ = requests.Wait() // failures are in the devices
	p.explainDiverged(ctx, org, hub, devices)
	list.Late = hubCtx.Err() != nil
	list.Rooms = groupByRoom(devices)
	return list, nil
}

// selectDevices returns the page of devices that a request selects, in rooms and in a row.
func selectDevices(all []hubDevice, request devicesRequest) (deviceList, []hubDevice) {
	var devices []hubDevice
	for _, device := range all {
		if device.matches(request.Find) {
			devices = append(devices, device)
		}
	}
	slices.SortStableFunc(devices, compareRooms)
	list := deviceList{
		Total: len(all),
		Found: len(devices),
		Pages: max(1, (len(devices)+devicesPage-1)/devicesPage),
	}
	list.Page = max(0, min(request.Page, list.Pages-1))
	devices = devices[list.Page*devicesPage : min(len(devices), (list.Page+1)*devicesPage)]
	list.Rooms = groupByRoom(devices)
	return list, devices
}

// getDevice asks a hub for one device.
func (p *Portal) getDevice(
	ctx context.Context, org string, hub domain.HubID, id int64,
) (hubDevice, error) {
	labels, err := p.ReadModels.DeviceLabels(ctx, org, hub)
	if err != nil {
		return hubDevice{}, err
	}
	full, err := p.Devices.Get(ctx, hub, id)
	if err != nil {
		return hubDevice{}, err
	}
	device := deviceOf(hub, full, labels[id])
	p.explainDiverged(ctx, org, hub, []hubDevice{device})
	return device, nil
}

// matches reports whether a device has the text find, as in devicesRequest.Find.
func (d hubDevice) matches(find string) bool {
	find = strings.ToLower(find)
	for _, text := range []string{d.Name, d.Room, d.Manufacturer, d.Model, formatInt(d.ID)} {
		if strings.Contains(strings.ToLower(text), find) {
			return true
		}
	}
	return false
}

// compareRooms orders devices by room, those without a room last.
func compareRooms(a, b hubDevice) int {
	if (a.Room == "") != (b.Room == "") {
		return strings.Compare(b.Room, a.Room)
	}
	return cmp.Or(
		strings.Compare(strings.ToLower(a.Room), strings.ToLower(b.Room)),
		strings.Compare(a.Room, b.Room),
	)
}

// groupByRoom returns the rooms of devices that compareRooms has sorted.
func groupByRoom(devices []hubDevice) []deviceRoom {
	var rooms []deviceRoom
	for _, d := range devices {
		if n := len(rooms); n == 0 || rooms[n-1].Name != d.Room {
			rooms = append(rooms, deviceRoom{Name: d.Room})
		}
		rooms[len(rooms)-1].Devices = append(rooms[len(rooms)-1].Devices, d)
	}
	return rooms
}

func deviceOf(hub domain.HubID, d domain.Device, label domain.DeviceLabel) hubDevice {
	device := hubDevice{
		Hub:          hub,
		ID:           d.ID,
		Name:         d.Name,
		Reported:     d.Name,
		Manufacturer: d.Manufacturer,
		Model:        d.Model,
		Available:    true,
	}
	if label.Name != nil {
		device.Name = *label.Name
	}
	if !domain.Shows(device.Name) {
		device.Name = "Device " + formatInt(d.ID)
	}
	if label.Room != nil {
		device.Room = *label.Room
	}
	for _, c := range d.Channels {
		device.Available = device.Available && c.Available
		shown := channelOf(hub, d.ID, c, hasSeveral(d.Channels, c.Key))
		if c.Status == domain.ChannelPending {
			shown.WakesAt = timeOf(d.WakesAt)
		}
		device.Channels = append(device.Channels, shown)
	}
	return device
}

// hasSeveral reports whether several channels have the same key.
func hasSeveral(channels []domain.Channel, key string) bool {
	n := 0
	for _, c := range channels {
		if c.Key == key {
			n++
		}
	}
	return n > 1
}

// channelOf returns a channel for display. The label of one of several channels with the same key
// has its endpoint.
func channelOf(hub domain.HubID, device int64, c domain.Channel, several bool) deviceChannel {
	unit := ""
	if c.Unit != nil {
		unit = *c.Unit
	}
	view := deviceChannel{
		Hub:       hub,
		DeviceID:  device,
		Key:       c.Key,
		Endpoint:  c.Endpoint,
		Label:     keyName(c.Key),
		Text:      formatValue(c.Key, unit, c.Value),
		Unit:      unit,
		Value:     orNull(c.Value),
		Desired:   orNull(c.Desired),
		Status:    c.Status,
		Available: c.Available,
	}
	if several {
		view.Label += " " + formatInt(c.Endpoint)
	}
	if len(c.Desired) > 0 && string(c.Desired) != "null" {
		view.DesiredText = formatValue(c.Key, unit, c.Desired)
	}
	if c.ObservedAt != nil {
		// an invalid time is not shown
		view.ObservedAt, _ = time.Parse(domain.TimeLayout, *c.ObservedAt)
	}
	view.StatusTag, view.StatusText = statusTexts(view, outcomeUnknown)
	if c.Writable {
		view.Control = controlOf(c)
	}
	return view
}

func orNull(value json.RawMessage) string {
	if len(value) == 0 {
		return "null"
	}
	return string(value)
}
