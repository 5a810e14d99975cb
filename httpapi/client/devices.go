package client

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// ListedDevice is a device as lists have it: its channels without values.
type ListedDevice struct {
	DeviceLabel
	Manufacturer string          `json:"manufacturer"`
	Model        string          `json:"model"`
	Channels     []ListedChannel `json:"channels"`
}

// Device is a device with everything about its channels.
type Device struct {
	DeviceLabel
	Manufacturer string    `json:"manufacturer"`
	Model        string    `json:"model"`
	Channels     []Channel `json:"channels"`
}

// DeviceLabel is what a device is called, and where it is.
type DeviceLabel struct {
	// ID is unique within the hub.
	ID int64 `json:"id"`
	// Name is what the hub reports unless one was set through the API.
	Name string `json:"name"`
	// Room is nil unless it was set through the API.
	Room *string `json:"room"`
}

// Channel gives the device's channel of that key and endpoint.
func (d Device) Channel(key string, endpoint int) (Channel, bool) {
	for _, channel := range d.Channels {
		if channel.Key == key && channel.Endpoint == endpoint {
			return channel, true
		}
	}
	return Channel{}, false
}

// The parts of a channel: which of them there are depends on what was asked for.
type (
	// ChannelHead says which channel it is.
	ChannelHead struct {
		Key string `json:"key"`
		// Endpoint is 0 unless the device has several channels of one key.
		Endpoint int     `json:"endpoint"`
		Kind     string  `json:"kind"`
		Unit     *string `json:"unit"`
		// Available is false when the hub can no longer reach the device.
		Available bool `json:"available"`
	}
	// ChannelAbilities says what can be done with it.
	ChannelAbilities struct {
		Readable bool `json:"readable"`
		// Writable channels take commands.
		Writable     bool         `json:"writable"`
		Capabilities Capabilities `json:"capabilities"`
	}
	// ChannelState says where it stands between what was asked of it and what it reports.
	ChannelState struct {
		// Value is what the device last reported, at ObservedAt; both nil: nothing yet.
		Value      Value      `json:"value"`
		ObservedAt *time.Time `json:"observed_at"`
		// Desired is what the last command asked for, at DesiredAt; both nil: no command yet.
		Desired   Value         `json:"desired"`
		DesiredAt *time.Time    `json:"desired_at"`
		Status    ChannelStatus `json:"status"`
	}

	// ListedChannel is a channel of a ListedDevice.
	ListedChannel struct {
		ChannelHead
		ChannelAbilities
	}
	// Channel is a channel of a Device.
	Channel struct {
		ChannelHead
		ChannelAbilities
		ChannelState
	}
	// CommandedChannel is a channel in the answer to a command.
	CommandedChannel struct {
		ChannelHead
		ChannelState
	}
)

// ChannelStatus is where a channel stands.
type ChannelStatus string

// The statuses of a channel.
const (
	StatusUnknown ChannelStatus = "unknown" // nothing asked, nothing reported yet
	// it reports what was asked, or nothing was asked
	StatusSynchronized ChannelStatus = "synchronized"
	StatusPending      ChannelStatus = "pending" // a command is under way
	// it has since reported something other than was asked
	StatusDiverged ChannelStatus = "diverged"
	StatusFailed   ChannelStatus = "failed" // the command was refused or abandoned
)

// Capabilities says more about some channels; it is empty for most.
type Capabilities map[string]json.RawMessage

// Bounds gives the lowest and highest value of a setpoint; false for channels without.
func (c Capabilities) Bounds() (low, high float64, ok bool) {
	low, hasLow := Value(c["min"]).Number()
	high, hasHigh := Value(c["max"]).Number()
	return low, high, hasLow && hasHigh
}

// cursorHeader is the position of the hub's event log from before the hub was asked for its
// devices.
const cursorHeader = "Event-Cursor"

// Devices asks the hub for its devices. Scope hubs:read. Like every call that asks the hub:
// ErrNotFound, ErrHubError, ErrHubOffline, ErrHubUnavailable, ErrHubTimeout.
func (c *Client) Devices(ctx context.Context, hubID string) ([]ListedDevice, error) {
	devices, _, err := c.devices(ctx, hubID)
	return devices, err
}

// devices also gives the position of the hub's events from before the hub was asked, "" when the
// service does not say.
func (c *Client) devices(ctx context.Context, hubID string) ([]ListedDevice, string, error) {
	var list struct {
		Data []ListedDevice `json:"data"`
	}
	header, err := c.do(
		ctx, call{method: http.MethodGet, path: route("hubs", hubID, "devices")}, &list,
	)
	return list.Data, header.Get(cursorHeader), err
}

// Device asks the hub for one device, with values. Scope hubs:read.
func (c *Client) Device(ctx context.Context, hubID string, deviceID int64) (Device, error) {
	var d Device
	_, err := c.do(ctx, call{method: http.MethodGet, path: deviceRoute(hubID, deviceID)}, &d)
	return d, err
}

func deviceRoute(hubID string, deviceID int64, more ...string) string {
	return route(
		append([]string{"hubs", hubID, "devices", strconv.FormatInt(deviceID, 10)}, more...)...)
}

// DeviceUpdate is what changes about a device: its name, its room, or both. A name that is cleared
// falls back to what the hub reports.
type DeviceUpdate struct {
	Name Change `json:"name,omitzero"`
	Room Change `json:"room,omitzero"`
}

// UpdateDevice names or places a device. Scope hubs:write.
func (c *Client) UpdateDevice(
	ctx context.Context, hubID string, deviceID int64, update DeviceUpdate,
) (DeviceLabel, error) {
	var label DeviceLabel
	_, err := c.do(
		ctx, call{method: http.MethodPatch, path: deviceRoute(hubID, deviceID), body: update},
		&label,
	)
	return label, err
}

// ForgetDevice makes the hub forget a device that it can no longer reach. Scope hubs:write.
// ErrInvalidRequest when the device is still on the hub's network. A device.forgotten event
// follows.
func (c *Client) ForgetDevice(ctx context.Context, hubID string, deviceID int64) error {
	_, err := c.do(
		ctx, call{method: http.MethodDelete, path: deviceRoute(hubID, deviceID), removes: true},
		nil,
	)
	return err
}

// Window is a hub's pairing or removal window.
type Window struct {
	// Status is "open".
	Status string `json:"status"`
	// ExpiresIn is in how many seconds it closes by itself.
	ExpiresIn int `json:"expires_in"`
}

// OpenPairing lets one device join the hub within two minutes. setupCode is the PIN, DSK or QR text
// printed on the device, which locks need; "" for none. Scope hubs:write. A device.added event
// follows when one joins.
func (c *Client) OpenPairing(ctx context.Context, hubID, setupCode string) (Window, error) {
	var w Window
	what := call{method: http.MethodPost, path: route("hubs", hubID, "pairing")}
	if setupCode != "" {
		what.body = map[string]string{"setup_code": setupCode}
	}
	_, err := c.do(ctx, what, &w)
	return w, err
}

// ClosePairing closes the pairing window. Scope hubs:write.
func (c *Client) ClosePairing(ctx context.Context, hubID string) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: route("hubs", hubID, "pairing")}, nil)
	return err
}

// OpenRemoval lets a device be removed by its own button within two minutes. Scope hubs:write. A
// device.forgotten event follows.
func (c *Client) OpenRemoval(ctx context.Context, hubID string) (Window, error) {
	var w Window
	_, err := c.do(
		ctx, call{method: http.MethodPost, path: route("hubs", hubID, "removal"), bare: true}, &w,
	)
	return w, err
}

// CloseRemoval closes the removal window. Scope hubs:write.
func (c *Client) CloseRemoval(ctx context.Context, hubID string) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: route("hubs", hubID, "removal")}, nil)
	return err
}
