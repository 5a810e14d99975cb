package portal

import (
	"context"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
)

// Devices sends requests to hubs and waits for their answers. Errors are domain.Errors: not_found
// for a device that the hub does not have, hub_offline at once for a hub that is not connected,
// hub_unavailable, hub_timeout and hub_error.
type Devices interface {
	// List returns the hub's devices; their channels have no values and no status.
	List(ctx context.Context, hub domain.HubID) ([]domain.Device, error)
	// Get returns one device with all its channels' fields.
	Get(ctx context.Context, hub domain.HubID, device int64) (domain.Device, error)
	// Forget makes the hub forget a device that the hub cannot reach any more. It returns
	// invalid_request for one that the hub can reach.
	Forget(ctx context.Context, hub domain.HubID, device int64) error
	// OpenPairing opens the pairing window; setupCode is the device's, nil if it has none. It
	// returns invalid_request for a code that the hub cannot use.
	OpenPairing(ctx context.Context, hub domain.HubID, setupCode *string) (domain.Window, error)
	ClosePairing(ctx context.Context, hub domain.HubID) error
	OpenRemoval(ctx context.Context, hub domain.HubID) (domain.Window, error)
	CloseRemoval(ctx context.Context, hub domain.HubID) error
}

// Commands sends commands to hubs.
type Commands interface {
	// Send sends a command to its hub and returns its channel, in the status pending, once the hub
	// has accepted the command. Commands with the same IdempotencyKey of an organization run once,
	// however often and on whichever replica they are sent; a different command with the key is
	// idempotency_conflict. Other errors are as in Devices, and command_refused and
	// invalid_request from the hub. A command continues after its caller has gone.
	Send(ctx context.Context, o domain.Origin, command domain.Command) (domain.SentCommand, error)
	// SendAll sends commands, to several hubs at once and to each hub in order, and returns their
	// results in the same order. A hub that does not answer a command gets no further ones.
	SendAll(
		ctx context.Context, o domain.Origin, all []domain.Command,
	) []domain.CommandResult
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
	// PlaceDevices sets the room of devices of hubs; "" clears it.
	PlaceDevices(
		ctx context.Context, o domain.Origin, org string, devices map[domain.HubID][]int64, room string,
	) error
}

// HubFaults reports what hubs do wrong.
type HubFaults interface {
	// HubFaults returns how a hub breaks the hub protocol at present.
	HubFaults(ctx context.Context, hub domain.HubID) ([]HubFault, error)
	// SilentHubs returns the hubs that are connected but do not report their events, and since
	// when. After an error it returns those that are known.
	SilentHubs(ctx context.Context) (map[domain.HubID]time.Time, error)
}

// Reported reads what devices reported last, also devices of hubs that are offline.
type Reported interface {
	// States returns the channels that a filter selects, at most limit, after a position. A page may
	// have few or none although more follow.
	States(
		ctx context.Context, reach domain.Reach, filter domain.StateFilter, limit int,
		after domain.StatePosition,
	) (domain.StatesPage, error)
	// StatesNeedingAttention returns the channels of the devices of which some channel may need
	// attention, in the order of hubs and devices. site and hub restrict them unless they are "".
	StatesNeedingAttention(
		ctx context.Context, org, site string, hub domain.HubID,
	) ([]domain.ReportedState, error)
	// FindDevices returns at most limit devices that have all words of a text in their name, room,
	// model or number, or the name of their hub or site. Each has the value of the first of the
	// channels main that it has.
	FindDevices(
		ctx context.Context, org, text string, main []string, limit int,
	) ([]domain.FoundDevice, error)
}

// HubFault is a way in which a hub breaks the hub protocol.
type HubFault struct {
	// Reason is the code of the fault, such as no_progress.
	Reason string
	// Since is when the fault was first seen.
	Since time.Time
}

// Events reads the event logs of hubs.
type Events interface {
	// Page returns the first limit events after a cursor; "" stands for the log's beginning.
	Page(ctx context.Context, hub domain.HubID, after string, limit int) (domain.EventPage, error)
	// At returns a cursor that all events stored at t or later come after.
	At(ctx context.Context, hub domain.HubID, t time.Time) (string, error)
	// EndCursor returns a cursor of the log's end: all events stored after the call come after it.
	EndCursor(ctx context.Context, hub domain.HubID) (string, error)
}

// Feed follows the events of all hubs of an organization, in the order of each hub's log.
type Feed interface {
	streams.EventFeeds
	// Since returns the position before the events that were stored at t or later.
	Since(t time.Time) string
	// Part returns at most limit events after a position that the filter chooses, about so many
	// bytes of them. A part with few events or none may have more, after Next.
	Part(
		ctx context.Context, org string, filter domain.EventFilter, after string, limit, bytes int,
		wait time.Duration,
	) (domain.EventPage, error)
}

// EventReader reads a feed. Its events have frames with the positions of the feed.
type EventReader = streams.EventReader

// Hubs has the hubs of organizations. It is called for every request about a hub and must answer
// from memory.
type Hubs interface {
	// Hub returns the access to a hub, and false if no organization has it.
	Hub(id domain.HubID) (domain.HubAccess, bool)
	// HubsOf returns the hubs of an organization, in no order.
	HubsOf(org string) []domain.HubID
	// Changed returns a channel that is closed when the organization gets, moves or loses a hub
	// after the call.
	Changed(org string) <-chan struct{}
}
