package live

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
	// askedAtOnce is how many devices of a hub are asked for at a time.
	askedAtOnce = 8
	// askedFor is how long all of a page's devices together may take: a page that shows some of
	// them is better than one that comes late.
	askedFor = 15 * time.Second
	// devicesPage is how many devices a page shows, and asks for.
	devicesPage = 60
	// namedDevices is the most devices of a hub that are named at once.
	namedDevices = 1000
)

// DevicesRequest says which of a hub's devices a page shows.
type DevicesRequest struct {
	// Find leaves those whose name, room, maker, model or number has it; "" leaves all.
	Find string
	// Page counts from 0.
	Page int
	// Within is how long the hub may take to tell about them. 0 stands for 15 s, which is also the
	// most.
	Within time.Duration
}

// DeviceList is a page of a hub's devices.
type DeviceList struct {
	Rooms []Room
	// Total is how many devices the hub has, Found how many of them were asked for, on Pages pages,
	// of which this is Page, counted from 0.
	Total, Found, Page, Pages int
	// Late says that the hub did not tell everything in time.
	Late bool
}

// Room is a room's devices; those without one are in the room "".
type Room struct {
	Name    string
	Devices []Device
}

// Device is a device as pages show it.
type Device struct {
	Hub  domain.HubID
	ID   int64
	Name string
	// Reported is the name that the hub reports, Room where it was placed, "" for nowhere.
	Reported     string
	Manufacturer string
	Model        string
	Room         string
	// Available is false while the hub cannot reach it.
	Available bool
	Channels  []Channel
	// Failure says why it has no values; empty when it has.
	Failure string
}

// Channel is a channel as pages show it.
type Channel struct {
	Hub      domain.HubID
	DeviceID int64
	Key      string
	Endpoint int64
	// Label is what it is called, Text its value in words with the unit.
	Label string
	Text  string
	Unit  string
	// Value and Desired are the JSON of what was last reported and asked; Wanted is Desired in
	// words.
	Value   string
	Desired string
	Wanted  string
	Status  domain.ChannelStatus
	// Explained says what the status means; empty when there is nothing to say.
	Explained  string
	ObservedAt time.Time
	Available  bool
	// Control is how it is set; "" for what is only read.
	Control Control
}

// DevicesOf asks the hub for its devices, and for the values of those of a page. They are given by
// room, those without a room last. A device that cannot be asked for is there without values; the
// error is that of the list.
func (l *Live) DevicesOf(
	ctx context.Context, org string, hub domain.HubID, want DevicesRequest,
) (DeviceList, error) {
	labels, err := l.ReadModels.DeviceLabels(ctx, org, hub)
	if err != nil {
		return DeviceList{}, err
	}
	within := askedFor
	if want.Within > 0 {
		within = min(within, want.Within)
	}
	asked, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	listed, err := l.Devices.List(asked, hub)
	if err != nil {
		if asked.Err() != nil && ctx.Err() == nil {
			return DeviceList{Late: true}, nil
		}
		return DeviceList{}, err
	}
	var devices []Device
	for _, d := range listed {
		if device := deviceOf(hub, d, labels[d.ID], ""); device.fits(want.Find) {
			devices = append(devices, device)
		}
	}
	slices.SortStableFunc(devices, inRooms)
	list := DeviceList{
		Total: len(listed),
		Found: len(devices),
		Pages: max(1, (len(devices)+devicesPage-1)/devicesPage),
	}
	list.Page = max(0, min(want.Page, list.Pages-1))
	devices = devices[list.Page*devicesPage : min(len(devices), (list.Page+1)*devicesPage)]
	asking := new(errgroup.Group)
	asking.SetLimit(askedAtOnce)
	for i, d := range devices {
		asking.Go(func() error {
			full, err := l.Devices.Get(asked, hub, d.ID)
			if err != nil {
				devices[i].Failure = "It was listed by the hub, which has not told its values."
				return nil
			}
			devices[i] = deviceOf(hub, full, labels[d.ID], "")
			return nil
		})
	}
	_ = asking.Wait() // each keeps its failure to itself
	list.Late = asked.Err() != nil
	list.Rooms = byRoom(devices)
	return list, nil
}

// DeviceNames gives what the devices of a hub are called, by device id, 1,000 of them at most. Of a
// hub that does not answer it gives the names that were set in the cloud.
func (l *Live) DeviceNames(
	ctx context.Context, org string, hub domain.HubID,
) (map[int64]string, error) {
	names, err := l.GivenNames(ctx, org, hub)
	if err != nil {
		return nil, err
	}
	listed, err := l.Devices.List(ctx, hub)
	if err != nil {
		return names, nil // a hub that is away or busy has those names all the same
	}
	for _, d := range listed {
		if _, set := names[d.ID]; !set && len(names) < namedDevices {
			names[d.ID] = d.Name
		}
	}
	return names, nil
}

// GivenNames gives the names that were set for devices of a hub in the cloud, 1,000 at most.
func (l *Live) GivenNames(
	ctx context.Context, org string, hub domain.HubID,
) (map[int64]string, error) {
	labels, err := l.ReadModels.DeviceLabels(ctx, org, hub)
	if err != nil {
		return nil, err
	}
	names := map[int64]string{}
	for id, label := range labels {
		if label.Name != nil && len(names) < namedDevices {
			names[id] = *label.Name
		}
	}
	return names, nil
}

// DeviceOf asks the hub for one device.
func (l *Live) DeviceOf(
	ctx context.Context, org string, hub domain.HubID, id int64,
) (Device, error) {
	labels, err := l.ReadModels.DeviceLabels(ctx, org, hub)
	if err != nil {
		return Device{}, err
	}
	full, err := l.Devices.Get(ctx, hub, id)
	if err != nil {
		return Device{}, err
	}
	return deviceOf(hub, full, labels[id], ""), nil
}

// fits says whether a device is one that somebody looks for.
func (d Device) fits(find string) bool {
	find = strings.ToLower(find)
	for _, text := range []string{d.Name, d.Room, d.Manufacturer, d.Model, formatInt(d.ID)} {
		if strings.Contains(strings.ToLower(text), find) {
			return true
		}
	}
	return false
}

// inRooms orders devices by room, those without one last.
func inRooms(a, b Device) int {
	if (a.Room == "") != (b.Room == "") {
		return strings.Compare(b.Room, a.Room)
	}
	return cmp.Or(
		strings.Compare(strings.ToLower(a.Room), strings.ToLower(b.Room)),
		strings.Compare(a.Room, b.Room),
	)
}

// byRoom puts devices that are in that order into their rooms.
func byRoom(devices []Device) []Room {
	var rooms []Room
	for _, d := range devices {
		if n := len(rooms); n == 0 || rooms[n-1].Name != d.Room {
			rooms = append(rooms, Room{Name: d.Room})
		}
		rooms[len(rooms)-1].Devices = append(rooms[len(rooms)-1].Devices, d)
	}
	return rooms
}

func deviceOf(hub domain.HubID, d domain.Device, label domain.DeviceLabel, failed string) Device {
	device := Device{
		Hub:          hub,
		ID:           d.ID,
		Name:         d.Name,
		Reported:     d.Name,
		Manufacturer: d.Manufacturer,
		Model:        d.Model,
		Available:    true,
		Failure:      failed,
	}
	if label.Name != nil {
		device.Name = *label.Name
	}
	if strings.TrimSpace(device.Name) == "" {
		device.Name = "Device " + formatInt(d.ID)
	}
	if label.Room != nil {
		device.Room = *label.Room
	}
	for _, c := range d.Channels {
		device.Available = device.Available && c.Available
		device.Channels = append(
			device.Channels, channelOf(hub, d.ID, c, severalOf(d.Channels, c.Key)),
		)
	}
	return device
}

// severalOf says whether a device has a key at several endpoints: then each is named with its own.
func severalOf(channels []domain.Channel, key string) bool {
	n := 0
	for _, c := range channels {
		if c.Key == key {
			n++
		}
	}
	return n > 1
}

func channelOf(hub domain.HubID, device int64, c domain.Channel, several bool) Channel {
	unit := ""
	if c.Unit != nil {
		unit = *c.Unit
	}
	view := Channel{
		Hub: hub, DeviceID: device, Key: c.Key, Endpoint: c.Endpoint, Label: nameOfKey(c.Key),
		Unit: unit, Text: text(c.Key, unit, c.Value),
		Value: jsonText(
			c.Value,
		), Desired: jsonText(c.Desired), Status: c.Status, Explained: statusWords[c.Status],
		Available: c.Available,
	}
	if several {
		view.Label += " " + formatInt(c.Endpoint)
	}
	if len(c.Desired) > 0 && string(c.Desired) != "null" {
		view.Wanted = text(c.Key, unit, c.Desired)
	}
	if c.ObservedAt != nil {
		// a time that is none is not shown
		view.ObservedAt, _ = time.Parse(domain.TimeLayout, *c.ObservedAt)
	}
	if c.Writable {
		view.Control = controlOf(c)
	}
	return view
}

func jsonText(value json.RawMessage) string {
	if len(value) == 0 {
		return "null"
	}
	return string(value)
}
