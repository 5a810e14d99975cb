package rpc

import (
	"context"
	"encoding/json"
	"fmt"

	"hubcloud/domain"
	"hubcloud/hubbridge/codec"
	"hubcloud/hubbridge/protocol"
	"hubcloud/streams/shares"
)

// Devices calls the methods of hubs. Errors are as in Caller.Call, and rate_limited when too
// many calls are in flight. It is safe for concurrent use.
type Devices struct {
	caller *Caller
	calls  *shares.Pool
	orgOf  func(domain.HubID) string
}

// NewDevices returns Devices that send their requests with caller. Each call is counted in
// calls, for the organization that orgOf returns; a nil pool sets no bound and never calls orgOf.
// Command is not counted: its caller has counted it since before the command was recorded.
func NewDevices(caller *Caller, calls *shares.Pool, orgOf func(domain.HubID) string) *Devices {
	return &Devices{caller, calls, orgOf}
}

// call is caller.Call, counted in calls.
func (d *Devices) call(
	ctx context.Context, hub domain.HubID, method string, params any,
	read func(result []byte) error,
) error {
	if d.calls != nil {
		release, err := d.calls.Take(CallTo(d.orgOf(hub), hub), 1)
		if err != nil {
			return err
		}
		defer release()
	}
	return d.caller.Call(ctx, hub, method, params, read)
}

// The params of the methods.
type (
	noParams     struct{}
	deviceParams struct {
		DeviceID int64 `json:"device_id"`
	}
	pairingParams struct {
		SetupCode *string `json:"setup_code,omitempty"`
	}
	commandParams struct {
		CommandID string          `json:"command_id"`
		DeviceID  int64           `json:"device_id"`
		Key       string          `json:"key"`
		Endpoint  int64           `json:"endpoint"`
		Value     json.RawMessage `json:"value"`
	}
)

// CheckOnline returns hub_offline for a hub that is not connected, without sending a request.
func (d *Devices) CheckOnline(ctx context.Context, hub domain.HubID) error {
	return d.caller.CheckOnline(ctx, hub)
}

// List returns the hub's devices in the hub's order. Their channels have no values and no status.
func (d *Devices) List(ctx context.Context, hub domain.HubID) (devices []domain.Device, err error) {
	err = d.call(ctx, hub, protocol.MethodDevicesList, noParams{},
		func(result []byte) (err error) {
			devices, err = codec.ParseDevices(result)
			return err
		})
	return devices, err
}

// Get returns one device with all members. A device that the hub does not have is not_found.
func (d *Devices) Get(
	ctx context.Context, hub domain.HubID, id int64,
) (device domain.Device, err error) {
	err = d.call(ctx, hub, protocol.MethodDevicesGet, deviceParams{id},
		func(result []byte) (err error) {
			if device, err = codec.ParseDevice(result); err == nil && device.ID != id {
				err = fmt.Errorf("it is about device %d, not %d", device.ID, id)
			}
			return err
		})
	return device, err
}

// Forget makes the hub forget a device that it can no longer reach. A device that is still on the
// hub's network is an invalid_request; one that the hub does not have is not_found.
func (d *Devices) Forget(ctx context.Context, hub domain.HubID, id int64) error {
	return d.call(ctx, hub, protocol.MethodDevicesForget, deviceParams{id}, nil)
}

// Command sends a command and returns the channel with the command pending. The hub runs each
// commandID once. An unknown device or channel is not_found, a value that the channel cannot take
// is invalid_request, and a command that the hub rejects is command_refused.
func (d *Devices) Command(
	ctx context.Context, c domain.Command, commandID string,
) (channel domain.Channel, err error) {
	params := commandParams{commandID, c.DeviceID, c.Key, c.Endpoint, c.Value}
	err = d.caller.Call(ctx, c.HubID, protocol.MethodChannelsCommand, params,
		func(result []byte) (err error) {
			if channel, err = codec.ParseChannel(result); err != nil {
				return err
			}
			return checkCommanded(channel, c)
		})
	return channel, err
}

// checkCommanded returns an error if the channel is not the one of the command, or not pending.
func checkCommanded(channel domain.Channel, c domain.Command) error {
	if channel.Key != c.Key || channel.Endpoint != c.Endpoint {
		return fmt.Errorf("it is about another channel than %s at endpoint %d", c.Key, c.Endpoint)
	}
	if channel.Status != domain.ChannelPending {
		return fmt.Errorf("the channel's status is not %s", domain.ChannelPending)
	}
	return nil
}
