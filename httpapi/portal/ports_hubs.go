package portal

import (
	"context"
	"time"

	"hubcloud/domain"
)

// HubDevices has hubs do what people ask of them. Errors are domain.Errors: hub_offline at once for
// a hub that is not connected, hub_unavailable, hub_timeout and hub_error.
type HubDevices interface {
	Get(ctx context.Context, hub domain.HubID, device int64) (domain.Device, error)
	// Forget makes the hub forget a device that it can no longer reach; one that it can is an
	// invalid_request.
	Forget(ctx context.Context, hub domain.HubID, device int64) error
	// OpenPairing lets one device join; the setup code is the device's own, nil when there is none.
	OpenPairing(ctx context.Context, hub domain.HubID, setupCode *string) (domain.Window, error)
	ClosePairing(ctx context.Context, hub domain.HubID) error
	// OpenRemoval lets one device leave, by a press of its button.
	OpenRemoval(ctx context.Context, hub domain.HubID) (domain.Window, error)
	CloseRemoval(ctx context.Context, hub domain.HubID) error
}

// Commands has hubs run commands, one once under its IdempotencyKey.
type Commands interface {
	Send(ctx context.Context, o domain.Origin, command domain.Command) (domain.Channel, error)
}

// CommandHistory tells what hubs were commanded.
type CommandHistory interface {
	// History gives the newest commands of a hub since then, about limit of them, oldest first.
	History(
		ctx context.Context, hub domain.HubID, since time.Time, limit int,
	) ([]domain.CommandDone, error)
}

// Labels names and places devices.
type Labels interface {
	LabelDevice(
		ctx context.Context, o domain.Origin, change domain.LabelDevice,
	) (domain.DeviceLabel, error)
}

// Owners says whose hubs are. It must answer from memory: it is asked before anything else about a
// hub's page.
type Owners interface {
	Hub(id domain.HubID) (domain.HubAccess, bool)
}
