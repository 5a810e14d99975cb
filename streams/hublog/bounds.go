package hublog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// bounds are the ends of a stream.
type bounds struct {
	// first and last are the first and the last sequence; first is last+1 for an empty stream.
	first, last uint64
	// lastStored is when the last message was stored. It may have expired since.
	lastStored time.Time
}

func (b bounds) isEmpty() bool { return b.first > b.last }

// bounds returns the bounds that the stream's leader answers, which must confirm an end before the
// sequence seen. Without a stream they are 1 and 0.
func (l *Logs) bounds(ctx context.Context, hub domain.HubID, seen uint64) (bounds, error) {
	info, err := l.api(hub).ConfirmedInfo(ctx, streams.HubStream(hub), seen)
	if errors.Is(err, jsapi.ErrNoStream) {
		return bounds{first: 1}, nil
	}
	if err != nil {
		return bounds{}, fmt.Errorf("hub log of %s: %w", hub, err)
	}
	l.correctRetention(hub, info.Config.MaxAge)
	return boundsOf(info), nil
}

func boundsOf(info *jetstream.StreamInfo) bounds {
	b := bounds{
		first:      info.State.FirstSeq,
		last:       info.State.LastSeq,
		lastStored: info.State.LastTime,
	}
	if info.State.Msgs == 0 {
		b.first = b.last + 1
	}
	return b
}

// awaitDurable returns once everything that the stream has published is on disk. The request uses
// the connection of the feed, so that a restart of the broker in between shows as a reconnection.
func (l *Logs) awaitDurable(ctx context.Context, hub domain.HubID) error {
	if err := l.api(hub).AwaitStored(ctx, streams.HubStream(hub)); err != nil {
		return fmt.Errorf("hub log of %s: %w", hub, err)
	}
	return nil
}
