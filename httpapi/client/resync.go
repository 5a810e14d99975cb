package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// positionPatience is how long a new stream may take to say where it begins. This service does so
// at once; one that has nothing but the contract to go by says it with its first event.
const positionPatience = 3 * time.Second

// Position gives the cursor of the newest event of a hub's log, or the one that an empty log is
// read from: events that come after the call are after it, and none that came before. Take it
// before doing something whose events must not be missed. Scope events:read.
func (c *Client) Position(ctx context.Context, hubID string) (string, error) {
	var position string
	err := c.repeat(
		ctx,
		call{method: http.MethodGet, path: streamRoute(hubID)},
		func() (err error) {
			position, err = c.tryPosition(ctx, hubID)
			return err
		},
	)
	return position, err
}

// tryPosition opens a stream and reads where it begins. A stream that does not say is followed by
// reading the log to its end.
func (c *Client) tryPosition(ctx context.Context, hubID string) (string, error) {
	s, err := c.openStream(ctx, hubID, "", c.timeout)
	if err != nil {
		return "", err
	}
	defer s.close()
	// What comes later than this is an event, for which a quiet hub may take hours.
	impatience := time.AfterFunc(positionPatience, func() { s.end(errStalled) })
	defer impatience.Stop()
	for {
		b, err := s.next()
		switch {
		case errors.Is(err, errStalled) && ctx.Err() == nil:
			return c.endOfLog(ctx, hubID)
		case err != nil:
			return "", err
		case b.id != "" && !unsendable(b.id):
			return b.id, nil
		}
	}
}

// endOfLog reads a hub's events from the oldest to the newest.
func (c *Client) endOfLog(ctx context.Context, hubID string) (string, error) {
	position := ""
	for {
		var p EventPage
		if _, err := c.try(ctx, eventsCall(hubID, EventQuery{
			After: position, Limit: pollPage,
		}), nil, &p); err != nil {
			return "", err
		}
		if p.NextCursor == "" || p.HasMore && p.NextCursor == position {
			return "", fmt.Errorf("%w: a page of events that does not go on", ErrProtocol)
		}
		if position = p.NextCursor; !p.HasMore {
			return position, nil
		}
	}
}

// Snapshot is a hub's devices, and where its events go on from there.
type Snapshot struct {
	Devices []ListedDevice
	// Cursor is a position from before the hub was asked: every change that Devices does not show
	// comes after it. Events that Devices shows already may come again.
	Cursor string
}

// Resync is what to do about ErrResync, and at the very start of a program that keeps the state of
// a hub: it asks the hub for its devices and gives the cursor to go on from, so that nothing falls
// between. It is the contract's rule for 410. Values of channels are not in lists: Client.Device
// gives those of one device, and the events after Cursor what changes meanwhile. Scopes hubs:read
// and events:read; ErrHubOffline while the hub cannot be asked.
func (c *Client) Resync(ctx context.Context, hubID string) (Snapshot, error) {
	devices, cursor, err := c.devices(ctx, hubID)
	if err != nil || cursor != "" {
		return Snapshot{devices, cursor}, err
	}
	// A service that does not say the position with the list: take it first.
	if cursor, err = c.Position(ctx, hubID); err != nil {
		return Snapshot{}, err
	}
	devices, err = c.Devices(ctx, hubID)
	return Snapshot{devices, cursor}, err
}
