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
	devices := []domain.Device{}
	readAll := func(d decoder, what memberOf) error {
		devices = devices[:0]
		return d.readArray(what, func() error {
			device, err := d.readDevice(listedChannel)
			devices = append(devices, device)
			return err
		})
	}
	var last *uint64
	err := parseObject(
		result, "the result", required("devices", readAll), optional("last_event", nullableNumberInto(&last)),
	)
	if err != nil {
		return nil, err
	}
	for i := range devices {
		devices[i].LastEvent = last
	}
	return devices, nil
}

// ParseDevice decodes the result of devices.get: a device whose channels have all members.
func ParseDevice(result []byte) (device domain.Device, err error) {
	read := func(d decoder, _ memberOf) (err error) {
		device, err = d.readDevice(fullChannel)
		return err
	}
	var last *uint64
	err = parseObject(
		result, "the result", required("device", read), optional("last_event", nullableNumberInto(&last)),
	)
	device.LastEvent = last
	return device, err
}

// ParseChannel decodes the result of channels.command: a channel with values and status, and
// without abilities.
func ParseChannel(result []byte) (channel domain.Channel, err error) {
	read := func(d decoder, _ memberOf) (err error) {
		channel, err = d.readChannel(commandedChannel)
		return err
	}
	err = parseObject(result, "the result", required("channel", read))
	return channel, err
}

// ParseWindow decodes the result of pairing.open and removal.open: an open window.
func ParseWindow(result []byte) (domain.Window, error) {
	var window domain.Window
	var expiresIn int64
	err := parseObject(result, "the result",
		required("status", stringInto(&window.Status)),
		required("expires_in", integerInto(&expiresIn)),
	)
	switch {
	case err != nil:
		return domain.Window{}, err
	case window.Status != domain.WindowOpen:
		return domain.Window{}, fmt.Errorf("status must be %q", domain.WindowOpen)
	case expiresIn < 1 || expiresIn > maxWindowSeconds:
		return domain.Window{}, fmt.Errorf("expires_in must be from 1 to %d", maxWindowSeconds)
	}
	window.ExpiresIn = int(expiresIn)
	return window, nil
}

// channelForm selects the members that a channel has in a result.
type channelForm uint8

const (
	listedChannel    channelForm = iota // abilities
	fullChannel                         // abilities and state
	commandedChannel                    // state
)

func (d decoder) readDevice(form channelForm) (device domain.Device, err error) {
	channels := func(d decoder, what memberOf) error {
		device.Channels = []domain.Channel{}
		return d.readArray(what, func() error {
			channel, err := d.readChannel(form)
			device.Channels = append(device.Channels, channel)
			return err
		})
	}
	err = d.readObject("a device",
		required("id", integerInto(&device.ID)),
		required("name", stringInto(&device.Name)),
		required("manufacturer", stringInto(&device.Manufacturer)),
		required("model", stringInto(&device.Model)),
		required("channels", channels),
		optional("wakes_at", nullableTimeInto(&device.WakesAt)),
	)
	return device, err
}

// readChannel reads a channel. Members that the form does not have are skipped.
func (d decoder) readChannel(form channelForm) (c domain.Channel, err error) {
	var status string
	members := append(make([]member, 0, 13),
		required("key", stringInto(&c.Key)),
		required("endpoint", integerInto(&c.Endpoint)),
		required("kind", stringInto(&c.Kind)),
		required("available", boolInto(&c.Available)),
		optional("unit", nullableStringInto(&c.Unit)),
	)
	if form != commandedChannel {
		members = append(members,
			required("readable", boolInto(&c.Readable)),
			required("writable", boolInto(&c.Writable)),
			optional("capabilities", nullableObjectInto(&c.Capabilities)),
		)
	}
	if form != listedChannel {
		members = append(members,
			required("status", stringInto(&status)),
			optional("value", nullableValueInto(&c.Value)),
			optional("observed_at", nullableTimeInto(&c.ObservedAt)),
			optional("desired", nullableValueInto(&c.Desired)),
			optional("desired_at", nullableTimeInto(&c.DesiredAt)),
		)
	}
	if err := d.readObject("a channel", members...); err != nil {
		return c, err
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
