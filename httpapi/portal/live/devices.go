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
	// askedFor is how long all of a hub's devices together may take: a page that shows some of them is better than one that comes late.
	askedFor = 15 * time.Second
)

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
	// Value and Desired are the JSON of what was last reported and asked; Wanted is Desired in words.
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

// DevicesOf asks the hub for its devices with their values, and gives them by room, those without a room last. A device that cannot be asked for is
// there without values; the error is that of the list.
func (l *Live) DevicesOf(ctx context.Context, org string, hub domain.HubID) ([]Room, error) {
	labels, err := l.ReadModels.DeviceLabels(ctx, org, hub)
	if err != nil {
		return nil, err
	}
	listed, err := l.Devices.List(ctx, hub)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askedFor)
	defer cancel()
	devices := make([]Device, len(listed))
	asking := new(errgroup.Group)
	asking.SetLimit(askedAtOnce)
	for i, d := range listed {
		asking.Go(func() error {
			full, err := l.Devices.Get(ctx, hub, d.ID)
			if err != nil {
				devices[i] = deviceOf(hub, d, labels[d.ID], "It was listed by the hub, which then did not tell its values.")
				return nil
			}
			devices[i] = deviceOf(hub, full, labels[d.ID], "")
			return nil
		})
	}
	_ = asking.Wait() // each keeps its failure to itself
	return byRoom(devices), nil
}

// DeviceOf asks the hub for one device.
func (l *Live) DeviceOf(ctx context.Context, org string, hub domain.HubID, id int64) (Device, error) {
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

func byRoom(devices []Device) []Room {
	slices.SortStableFunc(devices, func(a, b Device) int {
		if (a.Room == "") != (b.Room == "") {
			return strings.Compare(b.Room, a.Room)
		}
		return cmp.Or(strings.Compare(strings.ToLower(a.Room), strings.ToLower(b.Room)), strings.Compare(a.Room, b.Room))
	})
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
	device := Device{Hub: hub, ID: d.ID, Name: d.Name, Reported: d.Name, Manufacturer: d.Manufacturer, Model: d.Model, Available: true, Failure: failed}
	if label.Name != nil {
		device.Name = *label.Name
	}
	if label.Room != nil {
		device.Room = *label.Room
	}
	for _, c := range d.Channels {
		device.Available = device.Available && c.Available
		device.Channels = append(device.Channels, channelOf(hub, d.ID, c, severalOf(d.Channels, c.Key)))
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
		Hub: hub, DeviceID: device, Key: c.Key, Endpoint: c.Endpoint, Label: nameOfKey(c.Key), Unit: unit, Text: text(c.Key, unit, c.Value),
		Value: jsonText(c.Value), Desired: jsonText(c.Desired), Status: c.Status, Explained: statusWords[c.Status], Available: c.Available,
	}
	if several {
		view.Label += " " + formatInt(c.Endpoint)
	}
	if len(c.Desired) > 0 && string(c.Desired) != "null" {
		view.Wanted = text(c.Key, unit, c.Desired)
	}
	if c.ObservedAt != nil {
		view.ObservedAt, _ = time.Parse(domain.TimeLayout, *c.ObservedAt) // a time that is none is not shown
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
