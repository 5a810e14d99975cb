package devicestate

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/domain/attention"
)

// Basis is what the value of a channel is known from.
type Basis string

// The bases.
const (
	// BasisEvent means that an event of the hub reported the value or the command.
	BasisEvent Basis = "event"
	// BasisRead means that the hub answered it when it was asked for its devices.
	BasisRead Basis = "read"
)

// Mark is the place of an event in the log: its sequence, and the hub's own number of it or 0. The
// zero Mark stands for no event.
type Mark struct {
	Seq    uint64 `json:"seq,omitempty"`
	Number uint64 `json:"number,omitempty"`
}

// Hub is the last reported state of a hub's devices. The zero value is the state before the first
// entry of the log.
type Hub struct {
	// EpochID is the epoch of the log that the state belongs to.
	EpochID domain.EpochID `json:"epoch"`
	// Seq is the sequence of the last entry that was folded, and At its time in the log.
	Seq uint64    `json:"seq"`
	At  time.Time `json:"at"`
	// Since is the time of the first entry of the epoch that was folded.
	Since time.Time `json:"since"`
	// EventSeq is the sequence of the last event or read that was folded.
	EventSeq uint64 `json:"event_seq"`
	// Doubt is the last entry that put the whole state in doubt, until a complete read that takes
	// it into account. It is zero if there is none.
	Doubt Mark `json:"doubt"`
	// ReadAfter is the sequence at which the log ended when the last complete read was asked for,
	// and ReadNumber the last event that the read takes into account; 0 if it is not known. Both
	// have no meaning unless Read is true.
	ReadAfter  uint64 `json:"read_after"`
	ReadNumber uint64 `json:"read_number,omitempty"`
	Read       bool   `json:"read"`
	// Reshaped is the sequence of the last entry that removed a device or a channel, as far as it
	// is known: snapshots do not have it.
	Reshaped uint64 `json:"-"`
	// Omitted is the sequence of the last entry of which a device or channel was left out, because
	// there are as many as are kept; 0 for none since a complete read was asked for.
	Omitted uint64 `json:"omitted,omitempty"`
	// Added counts the channels that were added, for who bounds the channels of organizations.
	Added int `json:"-"`
	// Devices are ordered by id.
	Devices []*Device `json:"devices"`
	// Forgotten has the devices that were forgotten since the last complete read was asked for, so
	// that a read that is older does not bring them back.
	Forgotten []Forgotten `json:"forgotten,omitempty"`

	// full reports that the hub had MaxHubChannels when the last removal was at fullAt.
	full   bool
	fullAt uint64
	// orgFull is Entry.Full of the entry that is folded.
	orgFull bool
	// logged is the time of the entry that is folded, as precise as the log.
	logged time.Time
	// parts collects the parts of a snapshot.
	parts *parts
}

// Forgotten is a device that the hub has forgotten.
type Forgotten struct {
	ID int64 `json:"id"`
	Mark
}

// Device is the last reported state of a device.
type Device struct {
	ID           int64  `json:"id"`
	Name         string `json:"name"`
	Manufacturer string `json:"manufacturer"`
	Model        string `json:"model"`
	// Available is false while the hub cannot reach the device. AvailableSince is the time of the
	// event that reported it, by the hub's clock, zero if it is not known; AvailableLogged is when
	// the log got it.
	Available       bool      `json:"available"`
	AvailableSince  time.Time `json:"available_since"`
	AvailableLogged time.Time `json:"available_logged"`
	// Doubt is the last event after which something of the device is not known, until a read that
	// takes it into account. ReadAfter and ReadNumber are of the last read of the device, as
	// in Hub, if Read.
	Doubt      Mark   `json:"doubt"`
	ReadAfter  uint64 `json:"read_after"`
	ReadNumber uint64 `json:"read_number,omitempty"`
	Read       bool   `json:"read"`
	// Named and Reached are the last events that had the name and the availability, and Event is
	// the last event about the device itself.
	Named   Mark `json:"named"`
	Reached Mark `json:"reached"`
	Event   Mark `json:"event"`
	// Seq is the sequence of the last entry that changed the device's own fields.
	Seq uint64 `json:"seq"`
	// Channels are ordered by key and endpoint.
	Channels []*Channel `json:"channels"`
}

// Channel is the last reported state of a channel.
type Channel struct {
	Key      string `json:"key"`
	Endpoint int64  `json:"endpoint"`
	// Read reports whether Kind, Unit, Readable, Writable and Capabilities are known from a read.
	// Until then Kind is the key.
	Read         bool            `json:"read"`
	Kind         string          `json:"kind"`
	Unit         *string         `json:"unit"`
	Readable     bool            `json:"readable"`
	Writable     bool            `json:"writable"`
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
	// Available is false while the hub cannot reach the device.
	Available bool `json:"available"`
	// Value is the last reported value, nil if there is none, and ObservedAt when it was reported.
	// ChangedAt is when this value was first reported. Times are the hub's.
	Value      json.RawMessage `json:"value,omitempty"`
	ObservedAt time.Time       `json:"observed_at"`
	ChangedAt  time.Time       `json:"changed_at"`
	// Standing are the alarms that stand if Key is attention.AlarmChannel: the value is only the
	// last report.
	Standing []domain.StandingAlarm `json:"standing,omitempty"`
	// Desired is the value of the last command, nil if there is none, and DesiredAt its time.
	Desired   json.RawMessage      `json:"desired,omitempty"`
	DesiredAt time.Time            `json:"desired_at"`
	Status    domain.ChannelStatus `json:"status"`
	// Unsure reports that Status is a guess: the device reported another number than the command's,
	// and it is not known whether that is the nearest one that it can take.
	Unsure bool  `json:"unsure,omitempty"`
	Basis  Basis `json:"basis"`
	// Logged are the times of the log that belong to ObservedAt, ChangedAt and DesiredAt.
	Logged domain.LoggedTimes `json:"logged"`
	// Seq is the sequence of the last entry that changed the channel. Event is the last event about
	// it; after a read, Event.Number is the last event that the read takes into account.
	Seq   uint64 `json:"seq"`
	Event Mark   `json:"event"`
}

// IsSuspect reports whether the channel may need attention: it reports smoke or the like, an alarm
// stands, the battery is low, a command was not carried out, or the channel cannot be reached.
// Package attention decides.
func (c *Channel) IsSuspect() bool {
	return !c.Available || c.Status == domain.ChannelFailed || c.Status == domain.ChannelDiverged ||
		len(c.Standing) > 0 || c.Key != attention.AlarmChannel && attention.Raises(c.Key, c.Value)
}

// Certain reports whether everything that the hub reported is known to be in the state. Devices may
// be in doubt all the same.
func (h *Hub) Certain() bool { return h.Read && h.Doubt == Mark{} }

// Certain reports whether everything that the hub reported about the device is known to be in the
// state, if it is known of the hub.
func (d *Device) Certain() bool {
	return d.Read && d.Doubt == Mark{} &&
		!slices.ContainsFunc(d.Channels, func(c *Channel) bool { return !c.Read })
}

// doubt records an entry that puts the whole state in doubt.
func (h *Hub) doubt(m Mark) { h.Doubt = h.Doubt.and(m) }

// and returns the mark that stands for both marks, of which m is the earlier one: what takes it
// into account takes both into account.
func (m Mark) and(later Mark) Mark {
	if m.Seq > 0 && m.Number == 0 {
		later.Number = 0
	}
	return later
}

// Device returns the device with an id, or nil.
func (h *Hub) Device(id int64) *Device {
	if i, found := h.find(id); found {
		return h.Devices[i]
	}
	return nil
}

func (h *Hub) find(id int64) (int, bool) {
	return slices.BinarySearchFunc(h.Devices, id, func(d *Device, id int64) int {
		return cmp.Compare(d.ID, id)
	})
}

// Channel returns the channel with a key and an endpoint, or nil.
func (d *Device) Channel(key string, endpoint int64) *Channel {
	if i, found := d.find(key, endpoint); found {
		return d.Channels[i]
	}
	return nil
}

func (d *Device) find(key string, endpoint int64) (int, bool) {
	return slices.BinarySearchFunc(d.Channels, endpoint, func(c *Channel, endpoint int64) int {
		return cmp.Or(cmp.Compare(c.Key, key), cmp.Compare(c.Endpoint, endpoint))
	})
}

// device returns the device with an id, and adds it if the state does not have it. It returns nil,
// and puts the state in doubt, if there are too many devices.
func (h *Hub) device(id int64) (d *Device, added bool) {
	i, found := h.find(id)
	if found {
		return h.Devices[i], false
	}
	if len(h.Devices) >= MaxDevices {
		h.Omitted = h.Seq
		h.doubt(Mark{Seq: h.Seq})
		return nil, false
	}
	d = &Device{ID: id, Available: true, Seq: h.Seq}
	h.Devices = slices.Insert(h.Devices, i, d)
	return d, true
}

// channel returns the channel of a device with a key and an endpoint, and adds it if the device
// does not have it. It returns nil if the device, the hub or its organization has too many channels.
func (h *Hub) channel(d *Device, key string, endpoint int64) (c *Channel, added bool) {
	i, found := d.find(key, endpoint)
	if found {
		return d.Channels[i], false
	}
	if len(d.Channels) >= MaxChannels || h.orgFull || h.isFull() {
		h.Omitted = h.Seq
		return nil, false
	}
	h.Added++
	c = &Channel{
		Key: key, Endpoint: endpoint, Kind: key, Readable: true, Available: d.Available,
		Status: domain.ChannelUnknown, Basis: BasisEvent,
	}
	d.Channels = slices.Insert(d.Channels, i, c)
	return c, true
}

// isFull reports whether the hub has MaxHubChannels. That stays so until something is removed.
func (h *Hub) isFull() bool {
	if h.full && h.fullAt == h.Reshaped {
		return true
	}
	h.full, h.fullAt = h.ChannelCount() >= MaxHubChannels, h.Reshaped
	return h.full
}

// ChannelCount returns how many channels the hub's devices have together.
func (h *Hub) ChannelCount() (n int) {
	for _, d := range h.Devices {
		n += len(d.Channels)
	}
	return n
}

// remove removes a device.
func (h *Hub) remove(id int64) {
	if i, found := h.find(id); found {
		h.Devices = slices.Delete(h.Devices, i, i+1)
		h.Reshaped = h.Seq
	}
}
