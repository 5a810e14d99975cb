package client

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// ListedDevice is a device in a list: its channels have no values.
type ListedDevice struct {
	DeviceLabel
	Manufacturer string `json:"manufacturer"`
	Model        string `json:"model"`
	// WakesAt is when a device that sleeps is expected to wake; nil if its hub does not say so.
	WakesAt  *time.Time      `json:"wakes_at,omitempty"`
	Channels []ListedChannel `json:"channels"`
}

// Device is a device with all fields of its channels.
type Device struct {
	DeviceLabel
	Manufacturer string `json:"manufacturer"`
	Model        string `json:"model"`
	// WakesAt is when a device that sleeps is expected to wake; nil if its hub does not say so.
	WakesAt  *time.Time `json:"wakes_at,omitempty"`
	Channels []Channel  `json:"channels"`
}

// DeviceLabel is the name and the room of a device.
type DeviceLabel struct {
	// ID is unique within the hub.
	ID int64 `json:"id"`
	// Name is the name set through the API, or else the one that the hub reports.
	Name string `json:"name"`
	// Room is nil unless it was set through the API.
	Room *string `json:"room"`
}

// Channel returns the device's channel with that key and endpoint, and false if there is none.
func (d Device) Channel(key string, endpoint int) (Channel, bool) {
	for _, channel := range d.Channels {
		if channel.Key == key && channel.Endpoint == endpoint {
			return channel, true
		}
	}
	return Channel{}, false
}

// The parts of a channel. Which parts an answer has depends on the route.
type (
	// ChannelHead identifies a channel.
	ChannelHead struct {
		Key string `json:"key"`
		// Endpoint is 0 unless the device has several channels with the key.
		Endpoint int     `json:"endpoint"`
		Kind     string  `json:"kind"`
		Unit     *string `json:"unit"`
		// Available is false while the hub cannot reach the device.
		Available bool `json:"available"`
	}
	// ChannelAbilities is what can be done with a channel.
	ChannelAbilities struct {
		Readable bool `json:"readable"`
		// Writable channels take commands.
		Writable     bool         `json:"writable"`
		Capabilities Capabilities `json:"capabilities"`
	}
	// ChannelState is the reported and the desired value of a channel.
	ChannelState struct {
		// Value is what the device last reported, at ObservedAt; both nil if it has not.
		Value      Value      `json:"value"`
		ObservedAt *time.Time `json:"observed_at"`
		// Desired is what the last command asked for, at DesiredAt; both nil if there was none.
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

// ChannelStatus is how the reported value of a channel relates to the desired one.
type ChannelStatus string

// The statuses of a channel.
const (
	StatusUnknown ChannelStatus = "unknown" // nothing desired, nothing reported
	// the device reports the desired value, or none is desired
	StatusSynchronized ChannelStatus = "synchronized"
	StatusPending      ChannelStatus = "pending" // a command is under way
	// the device has since reported another value
	StatusDiverged ChannelStatus = "diverged"
	StatusFailed   ChannelStatus = "failed" // the command was rejected or abandoned
)

// Capabilities describes some channels further; it is empty for most.
type Capabilities map[string]json.RawMessage

// Bounds returns the lowest and highest value of a setpoint, and false for other channels.
func (c Capabilities) Bounds() (low, high float64, ok bool) {
	low, hasLow := Value(c["min"]).Number()
	high, hasHigh := Value(c["max"]).Number()
	return low, high, hasLow && hasHigh
}

// cursorHeader has a position from before devices or states were read: a cursor of the hub's event
// log, or a position of the organization's feed.
const cursorHeader = "Event-Cursor"

// Devices asks the hub for its devices. Scope hubs:read. Like every call that asks the hub, it
// returns ErrNotFound, ErrHubError, ErrHubOffline, ErrHubUnavailable and ErrHubTimeout.
func (c *Client) Devices(ctx context.Context, hubID string) ([]ListedDevice, error) {
	devices, _, err := c.devices(ctx, hubID)
	return devices, err
}

// devices also returns a cursor of the hub's events from before the hub was asked, "" if the
// service does not send it.
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
	return get[Device](ctx, c, deviceRoute(hubID, deviceID))
}

func deviceRoute(hubID string, deviceID int64, more ...string) string {
	return route(
		append([]string{"hubs", hubID, "devices", strconv.FormatInt(deviceID, 10)}, more...)...)
}

// DeviceUpdate changes a device's name, its room, or both. A cleared name falls back to the one
// that the hub reports.
type DeviceUpdate struct {
	Name Change `json:"name,omitzero"`
	Room Change `json:"room,omitzero"`
}

// UpdateDevice sets the name or room of a device. Scope hubs:write.
func (c *Client) UpdateDevice(
	ctx context.Context, hubID string, deviceID int64, update DeviceUpdate,
) (DeviceLabel, error) {
	return change[DeviceLabel](ctx, c, deviceRoute(hubID, deviceID), update)
}

// ForgetDevice makes the hub forget a device that it cannot reach any more. Scope hubs:write.
// Returns ErrInvalidRequest if the device is still on the hub's network. A device.forgotten event
// follows.
func (c *Client) ForgetDevice(ctx context.Context, hubID string, deviceID int64) error {
	return c.remove(ctx, deviceRoute(hubID, deviceID))
}

// Window is a hub's pairing or removal window.
type Window struct {
	// Status is "open".
	Status string `json:"status"`
	// ExpiresIn is the number of seconds after which the window closes by itself.
	ExpiresIn int `json:"expires_in"`
}

// OpenPairing lets one device join the hub within two minutes. setupCode is the PIN, DSK or QR text
// printed on the device, which locks need; "" if there is none. Scope hubs:write. A device.added
// event follows when a device joins.
func (c *Client) OpenPairing(ctx context.Context, hubID, setupCode string) (Window, error) {
	what := call{method: http.MethodPost, path: route("hubs", hubID, "pairing")}
	if setupCode != "" {
		what.body = map[string]string{"setup_code": setupCode}
	}
	return ask[Window](ctx, c, what)
}

// ClosePairing closes the pairing window. Scope hubs:write.
func (c *Client) ClosePairing(ctx context.Context, hubID string) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: route("hubs", hubID, "pairing")}, nil)
	return err
}

// OpenRemoval lets a device leave within two minutes, by its own button. Scope hubs:write. A
// device.forgotten event follows.
func (c *Client) OpenRemoval(ctx context.Context, hubID string) (Window, error) {
	path := route("hubs", hubID, "removal")
	return ask[Window](ctx, c, call{method: http.MethodPost, path: path, bare: true})
}

// CloseRemoval closes the removal window. Scope hubs:write.
func (c *Client) CloseRemoval(ctx context.Context, hubID string) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: route("hubs", hubID, "removal")}, nil)
	return err
}
