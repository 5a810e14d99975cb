package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"

	"hubcloud/domain"
)

// deviceBody is the contract's Device; C is listedChannel or fullChannel.
type deviceBody[C any] struct {
	ID           int64   `json:"id"`
	Name         string  `json:"name"`
	Manufacturer string  `json:"manufacturer"`
	Model        string  `json:"model"`
	Room         *string `json:"room"`
	Channels     []C     `json:"channels"`
}

// labelBody is what PATCH of a device answers: its name and room, and whose they are.
type labelBody struct {
	ID   int64   `json:"id"`
	Name string  `json:"name"`
	Room *string `json:"room"`
}

// The contract's Channel, in parts: which of them are present depends on what was asked.
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
	channelReach struct {
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
		channelReach
	}
	// fullChannel is a channel of a device that was asked for by itself.
	fullChannel struct {
		channelIdentity
		channelAbilities
		channelReach
		channelState
	}
	// commandedChannel is a channel in the answer to a command.
	commandedChannel struct {
		channelIdentity
		channelState
		channelReach
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

func listedForm(c domain.Channel) listedChannel {
	return listedChannel{
		channelIdentity: identityOf(c),
		channelAbilities: channelAbilities{
			Readable:     c.Readable,
			Writable:     c.Writable,
			Capabilities: c.Capabilities,
		},
		channelReach: channelReach{Available: c.Available},
	}
}

func fullForm(c domain.Channel) fullChannel {
	listed := listedForm(c)
	return fullChannel{
		listed.channelIdentity,
		listed.channelAbilities,
		listed.channelReach,
		stateOf(c),
	}
}

// formOfDevice lays the name and the room that were set through the API over what the hub says of a
// device.
func formOfDevice[C any](
	d domain.Device, label domain.DeviceLabel, channel func(domain.Channel) C,
) deviceBody[C] {
	body := deviceBody[C]{
		ID: d.ID, Name: nameOf(d, label), Manufacturer: d.Manufacturer, Model: d.Model,
		Room: label.Room, Channels: make([]C, 0, len(d.Channels)),
	}
	for _, c := range d.Channels {
		body.Channels = append(body.Channels, channel(c))
	}
	return body
}

// nameOf gives a device's name: what was set through the API, else what the hub reports.
func nameOf(d domain.Device, label domain.DeviceLabel) string {
	if label.Name != nil {
		return *label.Name
	}
	return d.Name
}

// listDevices answers with the position of the hub's event log from before the hub was asked:
// whoever reads on from there misses nothing that the list does not show, so a resync is one call.
func (a *api) listDevices(x *exchange) error {
	hub, err := a.ownHub(x)
	if err != nil {
		return err
	}
	labels := a.labelsOf(x, hub)
	cursor, err := a.Events.Position(x.ctx, hub)
	var devices []domain.Device
	if err == nil {
		devices, err = a.Devices.List(x.ctx, hub)
	}
	laid, labelsErr := labels()
	if err != nil {
		return err
	}
	if labelsErr != nil {
		return labelsErr
	}
	body := struct {
		Data []deviceBody[listedChannel] `json:"data"`
	}{make([]deviceBody[listedChannel], 0, len(devices))}
	for _, d := range devices {
		body.Data = append(body.Data, formOfDevice(d, laid[d.ID], listedForm))
	}
	x.w.Header()["Event-Cursor"] = []string{cursor}
	return x.writeJSON(http.StatusOK, body)
}

func (a *api) getDevice(x *exchange) error {
	hub, id, err := a.ownDevice(x)
	if err != nil {
		return err
	}
	labels := a.labelsOf(x, hub)
	device, err := a.Devices.Get(x.ctx, hub, id)
	laid, labelsErr := labels()
	if err != nil {
		return err
	}
	if labelsErr != nil {
		return labelsErr
	}
	return x.writeJSON(http.StatusOK, formOfDevice(device, laid[id], fullForm))
}

// updateDevice asks the hub first: a name for a device that is not there would wait for the next
// one of that number.
func (a *api) updateDevice(x *exchange) error {
	hub, id, err := a.ownDevice(x)
	if err != nil {
		return err
	}
	body, err := x.readObject("name", "room")
	if err != nil {
		return err
	}
	change := domain.LabelDevice{
		OrgID:    x.key.OrgID,
		HubID:    hub,
		DeviceID: id,
		SetName:  body.has("name"),
		SetRoom:  body.has("room"),
	}
	if change.SetName {
		if change.Name, err = body.nullableName("name"); err != nil {
			return err
		}
	}
	if change.SetRoom {
		if change.Room, err = body.nullableName("room"); err != nil {
			return err
		}
	}
	if !change.SetName && !change.SetRoom {
		return invalid("body: must have name, room, or both")
	}
	device, err := a.Devices.Get(x.ctx, hub, id)
	if err != nil {
		return err
	}
	label, err := a.Directory.LabelDevice(x.ctx, x.origin(), change)
	if err != nil {
		return err
	}
	return x.writeJSON(
		http.StatusOK, labelBody{ID: id, Name: nameOf(device, label), Room: label.Room},
	)
}

func (a *api) forgetDevice(x *exchange) error {
	hub, id, err := a.ownDevice(x)
	if err != nil {
		return err
	}
	if err := a.Devices.Forget(x.ctx, hub, id); err != nil {
		return err
	}
	x.writeNothing()
	return nil
}

// ownDevice gives the caller's hub and the device id of the path. There is no device with an id
// that is not written as integers are.
func (a *api) ownDevice(x *exchange) (domain.HubID, int64, error) {
	hub, err := a.ownHub(x)
	if err != nil {
		return "", 0, err
	}
	text := x.r.PathValue("device_id")
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(id, 10) != text {
		return "", 0, domain.Errorf(domain.CodeNotFound, "no such device")
	}
	return hub, id, nil
}

// labelsOf begins to read what was set through the API for a hub's devices, and gives what waits
// for it: the hub is asked meanwhile.
func (a *api) labelsOf(
	x *exchange, hub domain.HubID,
) (wait func() (map[int64]domain.DeviceLabel, error)) {
	var labels map[int64]domain.DeviceLabel
	var err error
	var thrown any
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer func() { thrown = recover() }()
		labels, err = a.ReadModels.DeviceLabels(x.ctx, x.key.OrgID, hub)
	}()
	return func() (map[int64]domain.DeviceLabel, error) {
		<-read
		if thrown != nil {
			panic(thrown) // where the request's own panics are caught
		}
		return labels, err
	}
}
