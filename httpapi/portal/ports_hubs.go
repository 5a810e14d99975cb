package portal

import (
	"context"
	"time"

	"hubcloud/domain"
)

// HubDevices sends requests about devices to hubs. Errors are domain.Errors: hub_offline at once if
// the hub is not connected, hub_unavailable, hub_timeout and hub_error.
type HubDevices interface {
	// Get returns a device as its hub reports it.
	Get(ctx context.Context, hub domain.HubID, device int64) (domain.Device, error)
	// Forget removes a device that the hub can no longer reach. It returns invalid_request if the
	// hub can reach the device.
	Forget(ctx context.Context, hub domain.HubID, device int64) error
	// OpenPairing opens a window in which one device can join. The setup code is the device's; nil
	// if it has none.
	OpenPairing(ctx context.Context, hub domain.HubID, setupCode *string) (domain.Window, error)
	ClosePairing(ctx context.Context, hub domain.HubID) error
	// OpenRemoval opens a window in which one device can leave, by a press of its button.
	OpenRemoval(ctx context.Context, hub domain.HubID) (domain.Window, error)
	CloseRemoval(ctx context.Context, hub domain.HubID) error
}

// Commands sends commands to hubs.
type Commands interface {
	// Send sends a command to its hub and returns the channel state from the hub's answer. Commands
	// with the same idempotency key are executed once.
	Send(ctx context.Context, o domain.Origin, command domain.Command) (domain.Channel, error)
}

// CommandHistory reads the recorded commands of hubs.
type CommandHistory interface {
	// History returns the newest commands of a hub since a time, about limit of them, oldest first.
	History(
		ctx context.Context, hub domain.HubID, since time.Time, limit int,
	) ([]domain.CommandRecord, error)
}

// Labels sets the names and rooms of devices.
type Labels interface {
	LabelDevice(
		ctx context.Context, o domain.Origin, change domain.LabelDevice,
	) (domain.DeviceLabel, error)
}

// HubFaults reports what hubs do wrong.
type HubFaults interface {
	// HubFaults returns how a hub breaks the hub protocol at present.
	HubFaults(ctx context.Context, hub domain.HubID) ([]HubFault, error)
	// SilentHubs returns the hubs that are connected but do not report their events, and since
	// when. After an error it returns those that are known.
	SilentHubs(ctx context.Context) (map[domain.HubID]time.Time, error)
}

// Reported reads what devices reported last, also those of hubs that are offline.
type Reported interface {
	// States returns the channels that a filter selects, at most limit, after a position.
	States(
		ctx context.Context, org string, filter domain.StateFilter, limit int,
		after domain.StatePosition,
	) (domain.Page[domain.ReportedState], error)
	// StatesNeedingAttention returns the channels of the devices of which some channel may need
	// attention, in the order of hubs and devices. site and hub restrict them unless they are "".
	StatesNeedingAttention(
		ctx context.Context, org, site string, hub domain.HubID,
	) ([]domain.ReportedState, error)
}

// HubFault is a way in which a hub breaks the hub protocol.
type HubFault struct {
	// Reason is the code of the fault, such as no_progress.
	Reason string
	// Since is when the fault was first seen.
	Since time.Time
}

// Owners looks up the organization of a hub. It is called for every request about a hub and must
// answer from memory.
type Owners interface {
	// Hub returns false if the hub belongs to no organization.
	Hub(id domain.HubID) (domain.HubAccess, bool)
}
