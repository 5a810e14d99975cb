package live

import (
	"context"
	"errors"
	"time"

	"hubcloud/domain"
)

// ErrEventsClosed is returned by EventReader.Next after the service stopped reading event logs.
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
	// EndCursor returns a cursor of the log's end: all events stored after the call come after it.
	EndCursor(ctx context.Context, hub domain.HubID) (string, error)
}

// Feed follows the events of all hubs of an organization, in the order of each hub's log.
type Feed interface {
	// Follow returns a reader of the events after a position that the filter chooses; "" stands for
	// the feed's end. The error is cursor_expired or invalid_request for a position that has
	// expired or is malformed.
	Follow(
		ctx context.Context, org string, filter domain.EventFilter, after string,
	) (EventReader, error)
	// FollowSince returns a reader of the events that were stored at a time or later.
	FollowSince(
		ctx context.Context, org string, filter domain.EventFilter, since time.Time,
	) (EventReader, error)
}

// EventReader reads a feed. It is used by one goroutine. Its events have frames with the positions
// of the feed, and feed.gap stands for events of a hub that are gone.
type EventReader interface {
	// Next returns up to limit new events. It returns no events if there are none, and also after
	// many that the filter does not choose; then Ready is closed. After ErrEventsClosed and
	// cursor_expired the reader returns no more events.
	Next(ctx context.Context, limit int) ([]domain.EncodedEvent, error)
	// Ready returns a channel that is closed when Next may have events. It is good for one wait.
	Ready() <-chan struct{}
	// Cursor returns the position after the events that Next has returned.
	Cursor() string
	// Close ends the reader.
	Close()
}

// Hubs has the hubs of organizations in memory.
type Hubs interface {
	// Hub returns the access to a hub, and false if no organization has it.
	Hub(id domain.HubID) (domain.HubAccess, bool)
	// HubsOf returns the hubs of an organization, in no order.
	HubsOf(org string) []domain.HubID
	// Changed returns a channel that is closed when the organization gets, moves or loses a hub
	// after the call.
	Changed(org string) <-chan struct{}
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
