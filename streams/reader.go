package streams

import (
	"context"
	"time"

	"hubcloud/domain"
)

// EventReader reads the events of a feed in order. It is used by one goroutine. feed.gap stands for
// events of a hub that are gone.
type EventReader interface {
	// Next returns at most limit new events, possibly fewer than there are; none if there are none
	// yet, and also after many that the filter does not choose: then Ready is closed. The caller must
	// not keep the slice. cursor_expired, if events have expired before they were read, and
	// domain.ErrEventsClosed are final.
	Next(ctx context.Context, limit int) ([]domain.EncodedEvent, error)
	// Ready returns a channel that is closed once Next may have events. It is good for one wait.
	Ready() <-chan struct{}
	// Cursor returns the position after the events that Next has returned, where another reader would
	// continue.
	Cursor() string
	// Close ends the reader.
	Close()
}

// EventFeeds follows the feeds of organizations. Errors are domain.Errors.
type EventFeeds interface {
	// Follow returns a reader of the events after a position that the filter chooses; "" stands for
	// the feed's end. The error is cursor_expired or invalid_request for a position that has expired
	// or is malformed.
	Follow(
		ctx context.Context, org string, filter domain.EventFilter, after string,
	) (EventReader, error)
	// FollowSince returns a reader of the events that were stored at a time or later, as far as they
	// are kept.
	FollowSince(
		ctx context.Context, org string, filter domain.EventFilter, since time.Time,
	) (EventReader, error)
}
