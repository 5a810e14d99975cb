package feed

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
	// stream describes the hub's stream if the bounds are the stream's.
	stream *jetstream.StreamInfo
}

func (b bounds) isEmpty() bool { return b.first > b.last }

// end returns the last sequence of a hub's log, as the journal has it, and when that record was
// stored. Everything that was stored before the call counts, and the hub's tail has received it.
func (l *Logs) end(
	ctx context.Context, hub domain.HubID,
) (last uint64, stored time.Time, err error) {
	if err := l.cfg.Journal.Sync(ctx, hub); err != nil {
		return 0, stored, fmt.Errorf("hub log of %s: %w", hub, err)
	}
	tip, _ := l.cfg.Journal.Tip(hub)
	return tip.Seq, tip.Time, nil
}

// bounds returns the bounds of a hub's log.
func (l *Logs) bounds(ctx context.Context, hub domain.HubID) (bounds, error) {
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	last, stored, err := l.end(ctx, hub)
	if err != nil {
		return bounds{}, err
	}
	for pause := readPause; ; pause = min(2*pause, maxReadPause) {
		first, err := l.first(ctx, hub, last)
		if err == nil {
			return bounds{first: first, last: last, lastStored: stored}, nil
		}
		if !jsapi.IsTemporary(err) || !streams.Sleep(ctx, pause) {
			return bounds{}, err
		}
	}
}

// first returns the first sequence of a hub's log that has not expired, or last+1 if all have. It
// is the hub's stream's if the stream is intact. The stream may be missing or damaged, and
// its server may be away or slow: then the first sequence is the journal's.
func (l *Logs) first(ctx context.Context, hub domain.HubID, last uint64) (uint64, error) {
	if last == 0 {
		return 1, nil
	}
	var b bounds
	err := l.askStream(ctx, hub, func(ctx context.Context) (err error) {
		b, err = l.streamBounds(ctx, hub)
		return err
	})
	switch {
	case err == nil && l.isIntact(hub, b):
		return b.first, nil
	case err != nil && !jsapi.IsTemporary(err):
		return 0, err
	}
	return l.firstInJournal(ctx, hub, last)
}

// firstInJournal returns the sequence of the hub's first record in the journal that has not
// expired, or last+1 if all have.
func (l *Logs) firstInJournal(
	ctx context.Context, hub domain.HubID, last uint64,
) (uint64, error) {
	first, err := l.cfg.Journal.Oldest(ctx, hub, l.cfg.Now().Add(-l.cfg.Retention))
	if errors.Is(err, journal.ErrGone) {
		return last + 1, nil
	}
	if err != nil {
		return 0, fmt.Errorf("hub log of %s: %w", hub, err)
	}
	return first, nil
}

// streamBounds returns the bounds of a hub's stream, which may lack the newest records. Without a
// stream they are 1 and 0.
func (l *Logs) streamBounds(ctx context.Context, hub domain.HubID) (bounds, error) {
	info, err := l.api(hub).Info(ctx, streams.HubStream(hub))
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
		stream:     info,
	}
	if info.State.Msgs == 0 {
		b.first = b.last + 1
	}
	return b
}

// api returns the JetStream API of the hub's shard.
func (l *Logs) api(hub domain.HubID) jsapi.API { return jsapi.New(l.shard(hub).nc) }
