package devices

import (
	"context"
	"encoding/json"
	"fmt"

	"hubcloud/domain"
	"hubcloud/hubbridge/codec"
	"hubcloud/hubbridge/protocol"
)

// Caller asks hubs (calls.Caller).
type Caller interface {
	MustBeOnline(ctx context.Context, hub domain.HubID) error
	Call(
		ctx context.Context, hub domain.HubID, method string, params any,
		read func(result []byte) error,
	) error
}

// Places bound the calls under way (calls.Places, with the hub's organization).
type Places interface {
	// Take counts one more call to a hub until release is called, or refuses it at once with
	// rate_limited.
	Take(hub domain.HubID) (release func(), err error)
}

// Devices asks hubs about their devices. Safe for concurrent use.
type Devices struct {
	caller Caller
	places Places
}

// New makes Devices that ask by way of caller, as many at once as places allows; nil is any number.
// Command takes no place: who sends a command has one from before it is recorded.
func New(caller Caller, places Places) *Devices { return &Devices{caller, places} }

// call is caller.Call in a place of its own.
func (d *Devices) call(
	ctx context.Context, hub domain.HubID, method string, params any,
	read func(result []byte) error,
) error {
	if d.places != nil {
		release, err := d.places.Take(hub)
		if err != nil {
			return err
		}
		defer release()
	}
	return d.caller.Call(ctx, hub, method, params, read)
}

type (
	none     struct{}
	deviceOf struct {
		DeviceID int64 `json:"device_id"`
	}
	pairing struct {
		SetupCode *string `json:"setup_code,omitempty"`
	}
	command struct {
		CommandID string          `json:"command_id"`
		DeviceID  int64           `json:"device_id"`
		Key       string          `json:"key"`
		Endpoint  int64           `json:"endpoint"`
		Value     json.RawMessage `json:"value"`
	}
)

// MustBeOnline refuses a hub that is not connected, as all the others do, without asking it
// anything.
func (d *Devices) MustBeOnline(ctx context.Context, hub domain.HubID) error {
	return d.caller.MustBeOnline(ctx, hub)
}

// List gives the hub's devices, in its order; their channels have no values and no status.
func (d *Devices) List(ctx context.Context, hub domain.HubID) (devices []domain.Device, err error) {
	err = d.call(ctx, hub, protocol.MethodDevicesList, none{}, func(result []byte) (err error) {
		devices, err = codec.ParseDevices(result)
		return err
	})
	return devices, err
}

// Get gives a device with everything. One that the hub does not have is not_found.
func (d *Devices) Get(
	ctx context.Context, hub domain.HubID, id int64,
) (device domain.Device, err error) {
	err = d.call(ctx, hub, protocol.MethodDevicesGet, deviceOf{id}, func(result []byte) (err error) {
		if device, err = codec.ParseDevice(result); err == nil && device.ID != id {
			err = fmt.Errorf("it is about device %d, not %d", device.ID, id)
		}
		return err
	})
	return device, err
}

// Forget makes the hub forget a device that it can no longer reach. One that is still on its
// network is an invalid_request, one that it does not have not_found.
func (d *Devices) Forget(ctx context.Context, hub domain.HubID, id int64) error {
	return d.call(ctx, hub, protocol.MethodDevicesForget, deviceOf{id}, nil)
}

// Command hands a command to the hub under an id under which the hub runs it once, and gives the
// channel with the command pending. A device or channel that there is not is not_found, one that
// cannot take the value an invalid_request, and what the hub will not do command_refused.
func (d *Devices) Command(
	ctx context.Context, c domain.Command, id string,
) (channel domain.Channel, err error) {
	params := command{id, c.DeviceID, c.Key, c.Endpoint, c.Value}
	err = d.caller.Call(
		ctx,
		c.HubID,
		protocol.MethodChannelsCommand,
		params,
		func(result []byte) (err error) {
			channel, err = codec.ParseChannel(result)
			switch {
			case err != nil:
			case channel.Key != c.Key || channel.Endpoint != c.Endpoint:
				err = fmt.Errorf(
					"it is about another channel than %s at endpoint %d", c.Key, c.Endpoint,
				)
			case channel.Status != domain.ChannelPending:
				err = fmt.Errorf("the channel's status is not %s", domain.ChannelPending)
			}
			return err
		},
	)
	return channel, err
}
