package live

import (
	"context"
	"errors"
	"time"

	"hubcloud/domain"
)

// ErrEventsClosed is returned by EventGroup.Next after the service stopped reading event logs.
var ErrEventsClosed = errors.New("the event logs are closed")

// ReadModels reads what an organization has.
type ReadModels interface {
	// Hubs returns up to limit hubs in the order of their ids, after the hub startingAfter. A site
	// that is not nil selects the hubs of that site.
	Hubs(
		ctx context.Context, org string, site *string, limit int, startingAfter string,
	) (domain.Page[domain.Hub], error)
	// Hub returns a hub with all details. The error is not_found if the organization does not have
	// the hub.
	Hub(ctx context.Context, org string, hub domain.HubID) (domain.Hub, error)
	// DeviceLabels returns the names and rooms that members set for a hub's devices, by device id.
	DeviceLabels(
		ctx context.Context, org string, hub domain.HubID,
	) (map[int64]domain.DeviceLabel, error)
}

// Devices asks hubs for their devices. Nothing is cached.
type Devices interface {
	// List returns a hub's devices without the values of their channels.
	List(ctx context.Context, hub domain.HubID) ([]domain.Device, error)
	// Get returns a device with the values of its channels.
	Get(ctx context.Context, hub domain.HubID, device int64) (domain.Device, error)
}

// Events reads the event logs of hubs.
type Events interface {
	// Page returns the first limit events after a cursor; "" stands for the log's beginning.
	Page(ctx context.Context, hub domain.HubID, after string, limit int) (domain.EventPage, error)
	// Before returns up to limit events before a place, newest first. A cursor stands for the place
	// after its event; "" stands for the log's end. Next is the place before the last of them.
	Before(
		ctx context.Context, hub domain.HubID, before string, limit int,
	) (domain.EventPage, error)
	// At returns a cursor that all events stored at t or later come after.
	At(ctx context.Context, hub domain.HubID, t time.Time) (string, error)
	// Group returns a group without hubs.
	Group() EventGroup
}

// EventGroup follows the logs of several hubs. It is used by one goroutine.
type EventGroup interface {
	// Follow adds a hub to the group. Its events are read from the cursor after, or from the log's
	// end if after is "".
	Follow(ctx context.Context, hub domain.HubID, after string) error
	// Leave removes a hub from the group.
	Leave(hub domain.HubID)
	// Next returns up to limit new events of one hub, and no events if no hub has any. After an
	// error the hub returned with the error is skipped until it is followed again. After
	// ErrEventsClosed the group returns no more events.
	Next(ctx context.Context, limit int) (domain.HubID, []domain.EncodedEvent, error)
	// Ready returns a channel that receives, or is closed, when Next may have events.
	Ready() <-chan struct{}
	// Cursor returns the cursor of the last event that Next returned for a hub, or the cursor
	// that the hub is followed from. It returns "" for a hub outside the group.
	Cursor(hub domain.HubID) string
	// Close removes all hubs.
	Close()
}

// Freshness reports whether this replica's view of members and sessions is up to date.
type Freshness interface {
	// Fresh reports whether the view is up to date now.
	Fresh() bool
	// Confirm waits until the view is up to date. The error is service_unavailable.
	Confirm(ctx context.Context) error
	// Lost returns a channel that is closed when the replica is cut off.
	Lost() <-chan struct{}
}

// codeOf returns the code of an error, "" for nil.
func codeOf(err error) domain.Code {
	if err == nil {
		return ""
	}
	return domain.CodeOf(err)
}
