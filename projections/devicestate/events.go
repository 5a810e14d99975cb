package devicestate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"hubcloud/domain"
	"hubcloud/domain/attention"
)

// The types of events that change the state. Others do not.
const (
	eventObserved    = "channel.observed"
	eventDesired     = "channel.desired"
	eventStatus      = "channel.status"
	eventAdded       = "device.added"
	eventUpdated     = "device.updated"
	eventAvailable   = "device.available"
	eventUnavailable = "device.unavailable"
)

const (
	// MaxDevices is the most devices of a hub that are kept, MaxChannels the most channels of a
	// device, and MaxHubChannels the most channels of all devices of a hub together. A state that
	// lacks some is in doubt.
	MaxDevices     = 5000
	MaxChannels    = 256
	MaxHubChannels = 20_000
	// maxValue is the most bytes of a value that is kept.
	maxValue = 4 << 10
	// maxForgotten bounds Hub.Forgotten.
	maxForgotten = 1000
)

// storedEvent has the members of a stored event (domain.HubEvent) that matter to the state.
type storedEvent struct {
	Type     string         `json:"type"`
	Time     string         `json:"time"`
	DeviceID *int64         `json:"device_id"`
	Data     jsontext.Value `json:"data"`
}

// lenient accepts duplicate names and texts that are not UTF-8, as encoding/json does. That package
// takes twice as long, and each report of a channel is decoded here.
var lenient = jsonv2.JoinOptions(
	jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true),
)

// channelData is the data of channel.observed and channel.desired.
type channelData struct {
	Key      string         `json:"key"`
	Endpoint int64          `json:"endpoint"`
	Value    jsontext.Value `json:"value"`
}

// deviceData is the data of device.added and device.updated.
type deviceData struct {
	Name            string          `json:"name"`
	RemovedChannels json.RawMessage `json:"removed_channels"`
}

// channelRef names a channel in removed_channels.
type channelRef struct {
	Key      string `json:"key"`
	Endpoint int64  `json:"endpoint"`
}

// foldEvent folds an event, whose sequence and time the state has already.
func (h *Hub) foldEvent(e Entry) error {
	if !concerns(e.Event) {
		return nil
	}
	var event storedEvent
	if err := jsonv2.Unmarshal(e.Event, &event, lenient); err != nil {
		return err
	}
	mark := Mark{e.Seq, e.Number}
	if event.Type == domain.EventHubEventsSkipped {
		if !isIn(mark, h.ReadNumber) {
			h.doubt(mark)
		}
		return nil
	}
	if event.DeviceID == nil {
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, event.Time)
	if err != nil {
		return err
	}
	id := *event.DeviceID
	switch event.Type {
	case eventObserved, eventDesired:
		return h.foldChannel(id, event.Type, mark, at, event.Data)
	case eventStatus:
		h.foldStatus(id, mark, event.Data)
	case eventAdded, eventUpdated:
		return h.foldDevice(id, event.Type, mark, at, event.Data)
	case eventAvailable, eventUnavailable:
		h.foldAvailability(id, event.Type == eventAvailable, mark, at)
	case domain.EventDeviceForgotten:
		h.forget(id, mark)
	}
	return nil
}

// quotedAlarmKeys are the keys of the channels that report alarms, as they stand in events.
var quotedAlarmKeys = func() (quoted [][]byte) {
	for _, key := range attention.AlarmKeys() {
		quoted = append(quoted, []byte(`"`+key+`"`))
	}
	return quoted
}()

// RaisesAlarm reports whether a stored event is a report of an alarm.
func RaisesAlarm(event []byte) bool {
	isIn := func(quoted []byte) bool { return bytes.Contains(event, quoted) }
	if !bytes.HasPrefix(event, typePrefixes[0]) || !slices.ContainsFunc(quotedAlarmKeys, isIn) {
		return false
	}
	var stored storedEvent
	var data channelData
	return jsonv2.Unmarshal(event, &stored, lenient) == nil && stored.Type == eventObserved &&
		jsonv2.Unmarshal(stored.Data, &data, lenient) == nil &&
		slices.Contains(attention.AlarmKeys(), data.Key) &&
		attention.Raises(data.Key, json.RawMessage(data.Value))
}

// isIn reports whether a read that takes the events up to a number into account has an event.
func isIn(m Mark, number uint64) bool { return m.Number > 0 && m.Number <= number }

// readNumber returns the last event that the last read of a device takes into account: the
// whole hub's for a device that the hub did not have.
func (h *Hub) readNumber(id int64) uint64 {
	if d := h.Device(id); d != nil {
		return d.ReadNumber
	}
	return h.ReadNumber
}

// typePrefixes begin the stored events that concern the state.
var typePrefixes = [][]byte{
	[]byte(`{"type":"channel.`), []byte(`{"type":"device.`),
	[]byte(`{"type":"` + domain.EventHubEventsSkipped + `"`),
}

// concerns reports whether a stored event may change the state. Stored events begin with their
// type, which needs no escapes if it is one of those that change the state.
func concerns(event []byte) bool {
	return slices.ContainsFunc(typePrefixes, func(prefix []byte) bool {
		return bytes.HasPrefix(event, prefix)
	})
}

// foldChannel folds a report or a command.
func (h *Hub) foldChannel(
	id int64, typ string, mark Mark, at time.Time, raw jsontext.Value,
) error {
	var data channelData
	if err := jsonv2.Unmarshal(raw, &data, lenient); err != nil {
		return err
	}
	if !isKey(data.Key) {
		return errors.New("key: must be 1 to 64 printable characters")
	}
	if len(data.Value) == 0 {
		return errors.New("value: is missing")
	}
	value := json.RawMessage(data.Value)
	if string(value) == "null" {
		value = nil
	}
	// A report that raises an alarm counts, even if a read has what followed it: what followed it
	// is in the log too, and nobody would have known of the alarm.
	raises := typ == eventObserved && attention.Raises(data.Key, value)
	if !raises && isIn(mark, h.channelNumber(id, data.Key, data.Endpoint)) {
		if typ == eventObserved {
			h.foldEarlier(id, data, domain.StandingAlarm{Value: value})
		}
		return nil
	}
	d, _ := h.device(id)
	if d == nil {
		return nil
	}
	c, added := h.channel(d, data.Key, data.Endpoint)
	if added {
		d.Seq = h.Seq
	}
	if c == nil || len(value) > maxValue {
		d.Doubt, d.Seq = d.Doubt.and(mark), h.Seq
		return nil
	}
	c.Event, c.Seq = mark, h.Seq
	if typ == eventDesired {
		c.Desired, c.DesiredAt, c.Status = value, at, domain.ChannelPending
		c.Logged.Desired, c.Unsure = h.logged, false
	} else {
		c.observe(value, at, h.logged)
		h.stand(d, c)
	}
	c.Basis = BasisEvent
	return nil
}

// foldEarlier folds a report that a read takes into account. The read has the last report of an
// alarm channel, but not which alarms the reports before it have ended.
func (h *Hub) foldEarlier(id int64, data channelData, report domain.StandingAlarm) {
	d := h.Device(id)
	if d == nil {
		return
	}
	if c := d.Channel(data.Key, data.Endpoint); c != nil && len(c.Standing) > 0 {
		c.Standing, c.Seq = attention.Stand(c.Standing, report), h.Seq
		h.stand(d, c)
	}
}

// stand updates the alarms that stand after the state of a channel has changed: what an alarm
// channel reports, and the jams that a lock or barrier of the device ends by moving.
func (h *Hub) stand(d *Device, c *Channel) {
	if c.Key != attention.AlarmChannel {
		h.endJams(d, c)
		return
	}
	c.Standing = attention.Stand(c.Standing, domain.StandingAlarm{
		Value: c.Value, ObservedAt: c.ObservedAt,
		Logged: domain.LoggedTimes{Observed: c.Logged.Observed},
	})
	for _, door := range d.Channels {
		h.endJams(d, door)
	}
}

// endJams ends the jams that a channel ends if it is a lock or barrier that has moved.
func (h *Hub) endJams(d *Device, c *Channel) {
	if c.Status == domain.ChannelPending {
		return
	}
	moved := attention.ChannelState{
		Key: c.Key, ChangedAt: c.ChangedAt, Status: c.Status, Logged: c.Logged,
	}
	for _, other := range d.Channels {
		if slices.ContainsFunc(other.Standing, moved.Ends) {
			other.Standing = slices.DeleteFunc(slices.Clone(other.Standing), moved.Ends)
			other.Seq = h.Seq
		}
	}
}

// endStanding ends the alarms of a channel that was removed and is there again.
func (h *Hub) endStanding(d *Device, c *Channel) {
	c.Standing, c.Seq = nil, h.Seq
	h.stand(d, c)
}

// channelNumber returns the last event that the state of a channel takes into account.
func (h *Hub) channelNumber(id int64, key string, endpoint int64) uint64 {
	if d := h.Device(id); d != nil {
		if c := d.Channel(key, endpoint); c != nil {
			return c.Event.Number
		}
	}
	return h.readNumber(id)
}

// observe folds a report of the device, by the rules of the contract's channel states.
func (c *Channel) observe(value json.RawMessage, at, logged time.Time) {
	state := domain.ChannelState{Status: c.Status}
	resolution := domain.Resolution(c.Key, c.Capabilities)
	if c.Desired != nil {
		state.Desired = desired{c.Desired, resolution}
	}
	state, _ = state.Reported(reported(value), at)
	c.Unsure = resolution == 0 && areOtherNumbers(c.Desired, value)
	if c.ObservedAt.IsZero() || !sameJSON(c.Value, value) {
		c.ChangedAt, c.Logged.Changed = at, logged
	}
	c.Value, c.ObservedAt, c.Logged.Observed, c.Status = value, at, logged, state.Status
}

// foldStatus folds the status that the hub tells of a channel that is known. What is no such status
// is an event of the hub's own.
func (h *Hub) foldStatus(id int64, mark Mark, raw jsontext.Value) {
	var data struct {
		Key      string `json:"key"`
		Endpoint int64  `json:"endpoint"`
		Status   string `json:"status"`
	}
	if jsonv2.Unmarshal(raw, &data, lenient) != nil {
		return
	}
	status, ok := domain.ParseChannelStatus(data.Status)
	if !ok || isIn(mark, h.channelNumber(id, data.Key, data.Endpoint)) {
		return
	}
	if d := h.Device(id); d != nil {
		if c := d.Channel(data.Key, data.Endpoint); c != nil {
			c.Status, c.Unsure, c.Event, c.Seq = status, false, mark, h.Seq
			h.endJams(d, c)
		}
	}
}

// foldDevice folds device.added and device.updated.
func (h *Hub) foldDevice(
	id int64, typ string, mark Mark, at time.Time, raw jsontext.Value,
) error {
	var data deviceData
	if err := json.Unmarshal(raw, &data); err != nil {
		return err
	}
	var removed []channelRef
	if typ == eventUpdated && len(data.RemovedChannels) > 0 {
		if err := json.Unmarshal(data.RemovedChannels, &removed); err != nil {
			return fmt.Errorf("removed_channels: %w", err)
		}
	}
	if isIn(mark, h.readNumber(id)) {
		if d := h.Device(id); d != nil {
			for _, ref := range removed {
				if c := d.Channel(ref.Key, ref.Endpoint); c != nil {
					h.endStanding(d, c)
				}
			}
		}
		return nil
	}
	d, _ := h.device(id)
	if d == nil {
		return nil
	}
	d.Name, d.Named, d.Event, d.Seq = cleanText(data.Name), mark, mark, h.Seq
	if typ == eventAdded {
		// A device that is there already may be known from a read that is newer than the event: the
		// next read shows which of its channels are left.
		d.Doubt, d.AvailableSince, d.AvailableLogged = d.Doubt.and(mark), at, h.logged
	}
	for _, ref := range removed {
		if i, found := d.find(ref.Key, ref.Endpoint); found {
			d.Channels = slices.Delete(d.Channels, i, i+1)
			h.Reshaped = h.Seq
		}
	}
	return nil
}

// foldAvailability folds device.available and device.unavailable. Of a device that the hub has they
// count although a read has what followed them: that follows in the log too.
func (h *Hub) foldAvailability(id int64, available bool, mark Mark, at time.Time) {
	if h.Device(id) == nil && isIn(mark, h.ReadNumber) {
		return
	}
	d, _ := h.device(id)
	if d == nil {
		return
	}
	d.Reached, d.Event, d.Seq = mark, mark, h.Seq
	if d.Available != available || d.AvailableSince.IsZero() {
		d.Available, d.AvailableSince, d.AvailableLogged = available, at, h.logged
	}
	for _, c := range d.Channels {
		if c.Available != available {
			c.Available, c.Seq = available, h.Seq
		}
	}
}

// forget folds device.forgotten.
func (h *Hub) forget(id int64, mark Mark) {
	if d := h.Device(id); d != nil && isIn(mark, d.ReadNumber) {
		for _, c := range d.Channels { // it has joined again
			h.endStanding(d, c)
		}
		return
	}
	h.remove(id)
	h.Forgotten = slices.DeleteFunc(h.Forgotten, func(f Forgotten) bool { return f.ID == id })
	h.Forgotten = append(h.Forgotten, Forgotten{id, mark})
	h.Forgotten = h.Forgotten[max(0, len(h.Forgotten)-maxForgotten):]
}
