package codec

import (
	"encoding/json"
	"errors"
	"fmt"

	"hubcloud/domain"
	"hubcloud/hubbridge/protocol"
)

const (
	// maxValueBytes bounds a channel's value to the size of an event, which could carry the value
	// too.
	maxValueBytes = protocol.MaxEventBytes
	// maxWindowSeconds is the longest that a window may be open: a day.
	maxWindowSeconds = 24 * 60 * 60
)

// ParseDevices decodes the result of devices.list: devices whose channels have no values and no
// status, each with the list's LastEvent. Its error, as of the functions below, is fit for
// API callers and states what is wrong with the result. The devices do not refer to result.
func ParseDevices(result []byte) ([]domain.Device, error) {
	f := readFields(result, "the result")
	last := f.nullableNumber("last_event")
	devices := []domain.Device{}
	f.array("devices", func(value []byte) error {
		device, err := readDevice(value, listedChannel)
		device.LastEvent = last
		devices = append(devices, device)
		return err
	})
	if f.err != nil {
		return nil, f.err
	}
	return devices, nil
}

// ParseDevice decodes the result of devices.get: a device whose channels have all members.
func ParseDevice(result []byte) (domain.Device, error) {
	f := readFields(result, "the result")
	last, value := f.nullableNumber("last_event"), f.required("device")
	if f.err != nil {
		return domain.Device{}, f.err
	}
	device, err := readDevice(value, fullChannel)
	device.LastEvent = last
	return device, err
}

// ParseChannel decodes the result of channels.command: a channel with values and status, and
// without abilities.
func ParseChannel(result []byte) (domain.Channel, error) {
	f := readFields(result, "the result")
	value := f.required("channel")
	if f.err != nil {
		return domain.Channel{}, f.err
	}
	return readChannel(value, commandedChannel)
}

// ParseWindow decodes the result of pairing.open and removal.open: an open window.
func ParseWindow(result []byte) (domain.Window, error) {
	f := readFields(result, "the result")
	window := domain.Window{Status: f.text("status")}
	expiresIn := f.integer("expires_in")
	switch {
	case f.err != nil:
		return domain.Window{}, f.err
	case window.Status != domain.WindowOpen:
		return domain.Window{}, fmt.Errorf("status must be %q", domain.WindowOpen)
	case expiresIn < 1 || expiresIn > maxWindowSeconds:
		return domain.Window{}, fmt.Errorf("expires_in must be from 1 to %d", maxWindowSeconds)
	}
	window.ExpiresIn = int(expiresIn)
	return window, nil
}

// maxSlots is how many slots a lock may list.
const maxSlots = 10_000

// ParseSlots decodes the result of credentials.list.
func ParseSlots(result []byte) (slots protocol.CredentialSlots, err error) {
	f := readFields(result, "the result")
	slots.Capacity = f.integer("capacity")
	f.array("slots", func(value []byte) error {
		var slot int64
		err := json.Unmarshal(value, &slot)
		if err != nil || slot < 1 || len(slots.Slots) == maxSlots {
			return fmt.Errorf("slots must be at most %d numbers from 1", maxSlots)
		}
		slots.Slots = append(slots.Slots, slot)
		return nil
	})
	return slots, f.err
}

// channelForm selects the members that a channel has in a result.
type channelForm uint8

const (
	listedChannel    channelForm = iota // abilities
	fullChannel                         // abilities and state
	commandedChannel                    // state
)

func readDevice(value []byte, form channelForm) (domain.Device, error) {
	f := readFields(value, "a device")
	device := domain.Device{
		ID: f.integer("id"), Name: f.text("name"), Manufacturer: f.text("manufacturer"),
		Model: f.text("model"), Channels: []domain.Channel{}, WakesAt: f.nullableTime("wakes_at"),
	}
	f.array("channels", func(value []byte) error {
		channel, err := readChannel(value, form)
		device.Channels = append(device.Channels, channel)
		return err
	})
	return device, f.err
}

// readChannel reads a channel. Members that the form does not have are skipped.
func readChannel(value []byte, form channelForm) (domain.Channel, error) {
	f := readFields(value, "a channel")
	c := domain.Channel{
		Key: f.text("key"), Endpoint: f.integer("endpoint"), Kind: f.text("kind"),
		Available: f.flag("available"), Unit: f.nullableText("unit"),
	}
	if form != commandedChannel {
		c.Readable, c.Writable = f.flag("readable"), f.flag("writable")
		c.Capabilities = f.nullableObject("capabilities")
	}
	var status string
	if form != listedChannel {
		status = f.text("status")
		c.Value, c.ObservedAt = f.nullableValue("value"), f.nullableTime("observed_at")
		c.Desired, c.DesiredAt = f.nullableValue("desired"), f.nullableTime("desired_at")
	}
	if f.err != nil {
		return c, f.err
	}
	if c.Key == "" || c.Endpoint < 0 {
		return c, errors.New("a channel has no key, or an endpoint below 0")
	}
	if form != commandedChannel && c.Capabilities == nil {
		c.Capabilities = json.RawMessage(`{}`)
	}
	if form == listedChannel {
		return c, nil
	}
	var ok bool
	if c.Status, ok = domain.ParseChannelStatus(status); !ok {
		return c, fmt.Errorf("status of a channel: %q is not a channel status", status)
	}
	return c, nil
}
