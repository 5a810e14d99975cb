package httpapi

import (
	"cmp"
	"encoding/json"
	"net/http"

	"hubcloud/domain"
)

// deviceBody is the contract's Device. C is listedChannel or fullChannel.
type deviceBody[C any] struct {
	ID           int64   `json:"id"`
	Name         string  `json:"name"`
	Manufacturer string  `json:"manufacturer"`
	Model        string  `json:"model"`
	Room         *string `json:"room"`
	WakesAt      string  `json:"wakes_at,omitempty"`
	Channels     []C     `json:"channels"`
}

// labelBody is the answer to PATCH of a device.
type labelBody struct {
	ID   int64   `json:"id"`
	Name string  `json:"name"`
	Room *string `json:"room"`
}

// The contract's Channel, in parts. Which parts an answer has depends on the route.
type (
	channelIdentity struct {
		Key      string  `json:"key"`
		Endpoint int64   `json:"endpoint"`
		Kind     string  `json:"kind"`
		Unit     *string `json:"unit"`
	}
	channelAbilities struct {
		Readable     bool            `json:"readable"`
		Writable     bool            `json:"writable"`
		Capabilities json.RawMessage `json:"capabilities"`
	}
	channelAvailability struct {
		Available bool `json:"available"`
	}
	channelState struct {
		Value      json.RawMessage      `json:"value"`
		ObservedAt *string              `json:"observed_at"`
		Desired    json.RawMessage      `json:"desired"`
		DesiredAt  *string              `json:"desired_at"`
		Status     domain.ChannelStatus `json:"status"`
	}

	// listedChannel is a channel in a list of devices.
	listedChannel struct {
		channelIdentity
		channelAbilities
		channelAvailability
	}
	// fullChannel is a channel of a single device.
	fullChannel struct {
		channelIdentity
		channelAbilities
		channelAvailability
		channelState
	}
	// commandedChannel is a channel in the answer to a command.
	commandedChannel struct {
		channelIdentity
		channelState
		channelAvailability
	}
)

func identityOf(c domain.Channel) channelIdentity {
	return channelIdentity{Key: c.Key, Endpoint: c.Endpoint, Kind: c.Kind, Unit: c.Unit}
}

func stateOf(c domain.Channel) channelState {
	return channelState{
		Value:      c.Value,
		ObservedAt: c.ObservedAt,
		Desired:    c.Desired,
		DesiredAt:  c.DesiredAt,
		Status:     c.Status,
	}
}

func newListedChannel(c domain.Channel) listedChannel {
	return listedChannel{
		channelIdentity: identityOf(c),
		channelAbilities: channelAbilities{
			Readable:     c.Readable,
			Writable:     c.Writable,
			Capabilities: c.Capabilities,
		},
		channelAvailability: channelAvailability{Available: c.Available},
	}
}

func newFullChannel(c domain.Channel) fullChannel {
	listed := newListedChannel(c)
	return fullChannel{
		listed.channelIdentity,
		listed.channelAbilities,
		listed.channelAvailability,
		stateOf(c),
	}
}

// newDeviceBody returns a device as the hub reports it, with the name and room that were set
// through the API.
func newDeviceBody[C any](
	d domain.Device, label domain.DeviceLabel, channel func(domain.Channel) C,
) deviceBody[C] {
	body := deviceBody[C]{
		ID: d.ID, Name: nameOf(d, label), Manufacturer: d.Manufacturer, Model: d.Model,
		Room: label.Room, Channels: make([]C, 0, len(d.Channels)),
	}
	if d.WakesAt != nil {
		body.WakesAt = *d.WakesAt
	}
	for _, c := range d.Channels {
		body.Channels = append(body.Channels, channel(c))
	}
	return body
}

// nameOf returns the name that was set through the API, or else the one that the hub reports.
func nameOf(d domain.Device, label domain.DeviceLabel) string {
	if label.Name != nil {
		return *label.Name
	}
	return d.Name
}

// listDevices answers with the hub's devices and a cursor of the hub's log from before the hub was
// asked. Events after the cursor include every change that the list does not show, so a resync
// needs no other request.
func (a *api) listDevices(req *request, hub domain.HubID) error {
	waitForLabels := a.readLabels(req, hub)
	cursor, err := a.Events.EndCursor(req.ctx, hub)
	var devices []domain.Device
	if err == nil {
		devices, err = a.Devices.List(req.ctx, hub)
	}
	labels, err := waitForLabels(err)
	if err != nil {
		return err
	}
	body := struct {
		Data []deviceBody[listedChannel] `json:"data"`
	}{make([]deviceBody[listedChannel], 0, len(devices))}
	for _, d := range devices {
		body.Data = append(body.Data, newDeviceBody(d, labels[d.ID], newListedChannel))
	}
	req.w.Header()["Event-Cursor"] = []string{cursor}
	return req.writeJSON(http.StatusOK, body)
}

func (a *api) getDevice(req *request, hub domain.HubID, id int64) error {
	waitForLabels := a.readLabels(req, hub)
	device, err := a.Devices.Get(req.ctx, hub, id)
	labels, err := waitForLabels(err)
	return req.answer(http.StatusOK, newDeviceBody(device, labels[id], newFullChannel), err)
}

// updateDevice asks the hub first: a name for a device that does not exist would apply to the next
// device with that id.
func (a *api) updateDevice(req *request, hub domain.HubID, id int64) error {
	body := req.readFields("name", "room")
	change := domain.LabelDevice{
		OrgID:    req.key.Reach.OrgID,
		HubID:    hub,
		DeviceID: id,
		SetName:  body.has("name"),
		SetRoom:  body.has("room"),
	}
	change.Name = read(body, "name", body.nullableName)
	change.Room = read(body, "room", body.nullableName)
	body.require(change.SetName || change.SetRoom, invalid("body: must have name, room, or both"))
	if body.err != nil {
		return body.err
	}
	device, err := a.Devices.Get(req.ctx, hub, id)
	if err != nil {
		return err
	}
	label, err := a.Directory.LabelDevice(req.ctx, req.origin(), change)
	return req.answer(
		http.StatusOK, labelBody{ID: id, Name: nameOf(device, label), Room: label.Room}, err,
	)
}

func (a *api) forgetDevice(req *request, hub domain.HubID, id int64) error {
	return req.answerNothing(a.Devices.Forget(req.ctx, hub, id))
}

// readLabels starts to read the labels of a hub's devices, while the caller asks the hub. The
// returned function must be called with the error of that: it waits for the labels, and returns that
// error or else its own.
func (a *api) readLabels(
	req *request, hub domain.HubID,
) (wait func(asked error) (map[int64]domain.DeviceLabel, error)) {
	var labels map[int64]domain.DeviceLabel
	var err error
	var panicked any
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { panicked = recover() }()
		labels, err = a.ReadModels.DeviceLabels(req.ctx, req.key.Reach.OrgID, hub)
	}()
	return func(asked error) (map[int64]domain.DeviceLabel, error) {
		<-done
		if panicked != nil {
			panic(panicked) // request.end recovers
		}
		return labels, cmp.Or(asked, err)
	}
}
