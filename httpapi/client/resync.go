package client

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// positionPatience is how long Position waits for a new stream to send its position. This service
// does so at once; the contract promises it only with the first event.
const positionPatience = 3 * time.Second

// Position returns the cursor of the newest event of a hub's log, or the start of an empty log:
// events after the call are after the cursor, events before the call are not. Call it before an
// action whose events must not be missed. Scope events:read.
func (c *Client) Position(ctx context.Context, hubID string) (string, error) {
	return c.positionOf(ctx, hubSource(hubID))
}

// positionOf returns the newest position of a source.
func (c *Client) positionOf(ctx context.Context, from source) (string, error) {
	var position string
	err := c.repeat(ctx, from.streamCall(false, false), func() (err error) {
		position, err = c.tryPosition(ctx, from)
		return err
	})
	return position, err
}

// tryPosition opens a stream and reads its position. If the stream does not send one, it reads the
// events to their end.
func (c *Client) tryPosition(ctx context.Context, from source) (string, error) {
	streaming, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s, err := c.openStream(streaming, cancel, from, "", c.timeout, false, false)
	if err != nil {
		return "", err
	}
	defer s.close()
	// After that an event follows, which may take hours for a quiet hub.
	impatience := time.AfterFunc(positionPatience, func() { cancel(errStalled) })
	defer impatience.Stop()
	for {
		b, err := s.next(streaming)
		switch {
		case errors.Is(err, errStalled) && ctx.Err() == nil:
			return c.endOf(ctx, from)
		case err != nil:
			return "", err
		case b.id != "" && !unsendable(b.id):
			return b.id, nil
		}
	}
}

// endOf reads the events of a source from the oldest to the newest.
func (c *Client) endOf(ctx context.Context, from source) (string, error) {
	position := ""
	for {
		var p EventPage
		if _, err := c.try(ctx, from.pageCall(EventQuery{
			After: position, Limit: pollPage,
		}), nil, &p); err != nil {
			return "", err
		}
		if p.NextCursor == "" || p.HasMore && p.NextCursor == position {
			return "", fmt.Errorf("%w: a page of events does not advance", ErrProtocol)
		}
		if position = p.NextCursor; !p.HasMore {
			return position, nil
		}
	}
}

// Snapshot is a hub's devices and the cursor from which to follow them.
type Snapshot struct {
	Devices []ListedDevice
	// Cursor is from before the hub was asked: all changes that Devices does not show come after
	// it. Some events after it may already show in Devices.
	Cursor string
}

// Resync asks the hub for its devices and returns them with the cursor to follow them from, without
// missing a change. It is the contract's answer to 410 and ErrResync, and the start of a program
// that keeps a hub's state. Lists have no channel values: Client.Device returns the values of a
// device, and the events after Cursor their changes. Scopes hubs:read and events:read. Returns
// ErrHubOffline while the hub is not connected.
func (c *Client) Resync(ctx context.Context, hubID string) (Snapshot, error) {
	devices, cursor, err := c.devices(ctx, hubID)
	if err != nil || cursor != "" {
		return Snapshot{devices, cursor}, err
	}
	// The service may not send the position with the list: read it first.
	if cursor, err = c.Position(ctx, hubID); err != nil {
		return Snapshot{}, err
	}
	devices, err = c.Devices(ctx, hubID)
	return Snapshot{devices, cursor}, err
}
