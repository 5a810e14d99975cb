package commands

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
	slotParams struct {
		DeviceID int64 `json:"device_id"`
		Slot     int64 `json:"slot"`
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

// CallLimits bound the calls in flight at one replica. A hub that does not answer keeps each call in
// flight until its timeout.
var CallLimits = shares.Limits{Total: 16_384, PerOrg: 2_048, PerID: 256}

// NewCallPool returns the bound of the calls in flight: commands, live calls for devices, and
// requests that wait for the same command.
func NewCallPool(registry *shares.Registry, limits shares.Limits) *shares.Pool {
	return shares.NewPool(registry, shares.PoolConfig{
		Name: "calls_to_hubs", What: "commands and live calls are in flight", Of: "hub",
		Limits: limits,
	})
}

// CallTo returns the spender of a call to a hub of an organization.
func CallTo(org string, hub domain.HubID) shares.Spender {
	return shares.Spender{Org: org, ID: string(hub)}
}

// OpenPairing opens the hub's pairing window, or restarts it when it is open. setupCode is the code
// of the device that is to join; nil for none. A code that the hub cannot read is an
// invalid_request.
func (d *Devices) OpenPairing(
	ctx context.Context, hub domain.HubID, setupCode *string,
) (domain.Window, error) {
	return d.open(ctx, hub, protocol.MethodPairingOpen, pairingParams{setupCode})
}

// ClosePairing closes the hub's pairing window. Closing a closed window succeeds.
func (d *Devices) ClosePairing(ctx context.Context, hub domain.HubID) error {
	return d.call(ctx, hub, protocol.MethodPairingClose, noParams{}, nil)
}

// OpenRemoval opens the hub's removal window, or restarts it when it is open.
func (d *Devices) OpenRemoval(ctx context.Context, hub domain.HubID) (domain.Window, error) {
	return d.open(ctx, hub, protocol.MethodRemovalOpen, noParams{})
}

// CloseRemoval closes the hub's removal window. Closing a closed window succeeds.
func (d *Devices) CloseRemoval(ctx context.Context, hub domain.HubID) error {
	return d.call(ctx, hub, protocol.MethodRemovalClose, noParams{}, nil)
}

func (d *Devices) open(
	ctx context.Context, hub domain.HubID, method string, params any,
) (window domain.Window, err error) {
	err = d.call(ctx, hub, method, params, func(result []byte) (err error) {
		window, err = codec.ParseWindow(result)
		return err
	})
	return window, err
}

// Slots returns the slots of a lock that have a code. A device that the hub does not have, or that is
// no lock with codes, is not_found.
func (d *Devices) Slots(
	ctx context.Context, hub domain.HubID, device int64,
) (slots protocol.CredentialSlots, err error) {
	err = d.call(ctx, hub, protocol.MethodCredentialsList, deviceParams{device},
		func(result []byte) (err error) {
			slots, err = codec.ParseSlots(result)
			return err
		})
	return slots, err
}

// SetCredential sets a code of a lock, or changes one. The errors of the hub have the codes
// not_found, invalid_request, command_refused, slot_taken and lock_full.
func (d *Devices) SetCredential(
	ctx context.Context, hub domain.HubID, params protocol.CredentialParams,
) error {
	return d.call(ctx, hub, protocol.MethodCredentialsSet, params, nil)
}

// RemoveCredential removes a code from a lock. A slot without a code is a success.
func (d *Devices) RemoveCredential(
	ctx context.Context, hub domain.HubID, device, slot int64,
) error {
	return d.call(ctx, hub, protocol.MethodCredentialsRemove, slotParams{device, slot}, nil)
}
