package rpc

import (
	"context"

	"hubcloud/domain"
	"hubcloud/hubbridge/codec"
	"hubcloud/hubbridge/protocol"
)

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
