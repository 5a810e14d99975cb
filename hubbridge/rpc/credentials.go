package rpc

import (
	"context"

	"hubcloud/domain"
	"hubcloud/hubbridge/codec"
	"hubcloud/hubbridge/protocol"
)

// slotParams are the params of credentials.remove.
type slotParams struct {
	DeviceID int64 `json:"device_id"`
	Slot     int64 `json:"slot"`
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
