package codec

import (
	"encoding/json"

	"hubcloud/domain"
	"hubcloud/hubbridge/protocol"
)

const (
	// maxValueDepth bounds how deep arrays and objects of a channel's value may stand in one
	// another. The contract's values have a depth of one, and what is much deeper than that could
	// not be written to everyone who asks for it.
	maxValueDepth = 64
	// maxValueBytes bounds a channel's value: what an event could tell.
	maxValueBytes = protocol.MaxEventBytes
	// maxWindow is the longest that a window may be open, in seconds: a day.
	maxWindow = 24 * 60 * 60
)

// ParseDevices reads the result of devices.list: devices whose channels have no values and no
// status. The error, as that of the functions below, says in words fit for an API caller why it is
// no such result. Nothing that is given refers to result.
func ParseDevices(result []byte) ([]domain.Device, error) {
	devices := []domain.Device{}
	err := parseResult(result, "devices", func(r *reader) bool {
		devices = devices[:0]
		return r.elements("devices", func() bool {
			device, ok := r.device(listed)
			devices = append(devices, device)
			return ok
		})
	})
	if err != nil {
		return nil, err
	}
	return devices, nil
}

// ParseDevice reads the result of devices.get: a device whose channels have everything.
func ParseDevice(result []byte) (device domain.Device, err error) {
	err = parseResult(result, "device", func(r *reader) (ok bool) {
		device, ok = r.device(whole)
		return ok
	})
	return device, err
}

// ParseChannel reads the result of channels.command: a channel with values and status, and without
// abilities.
func ParseChannel(result []byte) (channel domain.Channel, err error) {
	err = parseResult(result, "channel", func(r *reader) (ok bool) {
		channel, ok = r.channel(commanded)
		return ok
	})
	return channel, err
}

// ParseWindow reads the result of pairing.open and removal.open: a window that is open.
func ParseWindow(result []byte) (domain.Window, error) {
	r := newReader(result)
	var window domain.Window
	var expires int64
	var found given
	ok := r.members("the result", func(name []byte) bool {
		switch string(name) {
		case "status":
			return found.mark(0) && r.word("status", &window.Status)
		case "expires_in":
			return found.mark(1) && r.integer("expires_in", &expires)
		}
		return r.skip()
	})
	switch {
	case !ok || !r.has(found, "the result", "status", "expires_in"):
	case window.Status != domain.WindowOpen:
		r.fail("status is not %q", domain.WindowOpen)
	case expires < 1 || expires > maxWindow:
		r.fail("expires_in is not from 1 to %d", maxWindow)
	}
	window.ExpiresIn = int(expires)
	return window, r.end()
}

// parseResult reads a result of one member.
func parseResult(result []byte, member string, read func(*reader) bool) error {
	r := newReader(result)
	var found given
	ok := r.members("the result", func(name []byte) bool {
		if string(name) == member {
			return found.mark(0) && read(r)
		}
		return r.skip()
	})
	if ok {
		r.has(found, "the result", member)
	}
	return r.end()
}

// form says which members of a channel an answer has.
type form uint8

const (
	listed    form = iota // abilities
	whole                 // abilities and state
	commanded             // state
)

func (r *reader) device(f form) (d domain.Device, ok bool) {
	var found given
	ok = r.members("a device", func(name []byte) bool {
		switch string(name) {
		case "id":
			return found.mark(0) && r.integer("id of a device", &d.ID)
		case "name":
			return found.mark(1) && r.word("name of a device", &d.Name)
		case "manufacturer":
			return found.mark(2) && r.word("manufacturer of a device", &d.Manufacturer)
		case "model":
			return found.mark(3) && r.word("model of a device", &d.Model)
		case "channels":
			found.mark(4)
			d.Channels = []domain.Channel{}
			return r.elements("channels of a device", func() bool {
				channel, ok := r.channel(f)
				d.Channels = append(d.Channels, channel)
				return ok
			})
		}
		return r.skip()
	})
	return d, ok && r.has(found, "a device", "id", "name", "manufacturer", "model", "channels")
}

// channel reads a channel. Members that the form does not have are passed over.
func (r *reader) channel(f form) (c domain.Channel, ok bool) {
	var found given
	status := ""
	ok = r.members("a channel", func(name []byte) bool {
		switch string(name) {
		case "key":
			return found.mark(0) && r.word("key of a channel", &c.Key)
		case "endpoint":
			return found.mark(1) && r.integer("endpoint of a channel", &c.Endpoint)
		case "kind":
			return found.mark(2) && r.word("kind of a channel", &c.Kind)
		case "available":
			return found.mark(3) && r.boolean("available of a channel", &c.Available)
		case "unit":
			return r.nullableText("unit of a channel", &c.Unit)
		}
		if f != commanded {
			switch string(name) {
			case "readable":
				return found.mark(4) && r.boolean("readable of a channel", &c.Readable)
			case "writable":
				return found.mark(5) && r.boolean("writable of a channel", &c.Writable)
			case "capabilities":
				return r.nullableObject("capabilities of a channel", &c.Capabilities)
			}
		}
		if f != listed {
			switch string(name) {
			case "value":
				return r.nullable("value of a channel", &c.Value)
			case "desired":
				return r.nullable("desired of a channel", &c.Desired)
			case "observed_at":
				return r.nullableTime("observed_at of a channel", &c.ObservedAt)
			case "desired_at":
				return r.nullableTime("desired_at of a channel", &c.DesiredAt)
			case "status":
				return found.mark(6) && r.word("status of a channel", &status)
			}
		}
		return r.skip()
	})
	if !ok {
		return c, false
	}
	needed := []string{"key", "endpoint", "kind", "available", "readable", "writable", "status"}
	if f == commanded {
		found |= 1<<4 | 1<<5
	} else if c.Capabilities == nil {
		c.Capabilities = json.RawMessage(`{}`)
	}
	if f == listed {
		found |= 1 << 6
	} else if c.Status, ok = domain.ParseChannelStatus(status); !ok && found&(1<<6) != 0 {
		return c, r.fail("status of a channel is none of the contract's")
	}
	if !r.has(found, "a channel", needed...) {
		return c, false
	}
	if c.Key == "" || c.Endpoint < 0 {
		return c, r.fail("a channel has no key, or an endpoint below 0")
	}
	return c, true
}
