package hublog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
)

// bounds are the ends of a log.
type bounds struct {
	// first and last are the first and the last sequence; first is last+1 for an empty log.
	first, last uint64
	// lastStored is when the last record was stored. It may have expired since.
	lastStored time.Time
}

func (b bounds) isEmpty() bool { return b.first > b.last }

// end returns the last sequence of a hub's log, as the journal has it, and when that record was
// stored. Everything that was stored before the call counts, and the hub's tail has received it.
func (l *Logs) end(
	ctx context.Context, hub domain.HubID,
) (last uint64, stored time.Time, err error) {
	if l.cfg.Journal != nil {
		if err := l.cfg.Journal.Sync(ctx, hub); err != nil {
			return 0, stored, fmt.Errorf("hub log of %s: %w", hub, err)
		}
		if tip, ok := l.cfg.Journal.Tip(hub); ok {
			return tip.Seq, tip.Time, nil
		}
	}
	b, err := l.streamBounds(ctx, hub)
	return b.last, b.lastStored, err
}

// bounds returns the bounds of a hub's log.
func (l *Logs) bounds(ctx context.Context, hub domain.HubID) (bounds, error) {
	last, stored, err := l.end(ctx, hub)
	if err != nil {
		return bounds{}, err
	}
	b, err := l.streamBounds(ctx, hub)
	away := false
	if err != nil && l.cfg.Journal != nil && jsapi.IsTemporary(err) {
		// The stream may have messages from before there was a journal.
		away, _ = l.cfg.Journal.Covers(ctx, hub)
	}
	if err != nil && !away {
		return bounds{}, err
	}
	if away || b.last == 0 && last > 0 {
		// The stream is missing or its server is away: what the log has left is in the journal.
		b.first = last + 1
		if l.cfg.Journal != nil {
			oldest, err := l.cfg.Journal.Oldest(ctx, hub)
			if err != nil && !errors.Is(err, journal.ErrGone) {
				return bounds{}, fmt.Errorf("hub log of %s: %w", hub, err)
			}
			if err == nil {
				b.first = oldest
			}
		}
	}
	b.last, b.lastStored = last, stored
	return b, nil
}

// boundsRetry is the policy for the bounds of a stream. Its server may be away for minutes, and the
// journal knows as well.
var boundsRetry = jsapi.Retry{Total: getTimeout, Try: getTimeout, If: func(err error) bool {
	return jsapi.IsTemporary(err) && !errors.Is(err, jsapi.ErrNoStream) &&
		!errors.Is(err, jsapi.ErrOffline)
}}

// streamBounds returns the bounds of a hub's stream, which may lack the newest records. Without a
// stream they are 1 and 0.
func (l *Logs) streamBounds(ctx context.Context, hub domain.HubID) (bounds, error) {
	info, err := l.api(hub).WithRetry(boundsRetry).Info(ctx, streams.HubStream(hub))
	if errors.Is(err, jsapi.ErrNoStream) {
		return bounds{first: 1}, nil
	}
	if err != nil {
		return bounds{}, fmt.Errorf("hub log of %s: %w", hub, err)
	}
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

// api returns the JetStream API of the hub's shard.
func (l *Logs) api(hub domain.HubID) jsapi.API { return jsapi.New(l.shard(hub).nc) }
