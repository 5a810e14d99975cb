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
	"hubcloud/streams/views"
)

// bounds are the ends of a log.
type bounds struct {
	// first and last are the first and the last sequence; first is last+1 for an empty log.
	first, last uint64
	// lastStored is when the last record was stored. It may have expired since.
	lastStored time.Time
	// streamed is up to where the hub's stream has the log; 0 if the stream is away or incomplete.
	streamed uint64
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
	b := bounds{last: last, lastStored: stored}
	for pause := readPause; ; pause = min(2*pause, maxReadPause) {
		if b.first, b.streamed, err = l.first(ctx, hub, last); err == nil {
			return b, nil
		}
		if !jsapi.IsTemporary(err) || !streams.Sleep(ctx, pause) {
			return bounds{}, err
		}
	}
}

// first returns the first sequence of a hub's log that has not expired, or last+1 if all have. It
// is the hub's stream's if the stream is intact, and streamed is the stream's last one. The stream
// may be missing or damaged, and its server may be away or slow: then the first sequence is the
// journal's, and streamed is 0.
func (l *Logs) first(
	ctx context.Context, hub domain.HubID, last uint64,
) (first, streamed uint64, err error) {
	if last == 0 {
		return 1, 0, nil
	}
	var info *jetstream.StreamInfo
	err = l.askStream(ctx, hub, func(ctx context.Context) (err error) {
		info, err = l.api(hub).Info(ctx, streams.HubStream(hub))
		return err
	})
	tip, _ := l.cfg.Journal.Tip(hub)
	switch {
	case err == nil && views.IsIntact(info, tip.Time, l.cfg.Now(), l.cfg.Retention):
		b := boundsOf(info)
		return b.first, b.last, nil
	case err != nil && !jsapi.IsTemporary(err):
		return 0, 0, fmt.Errorf("hub log of %s: %w", hub, err)
	}
	first, err = l.firstInJournal(ctx, hub, last)
	return first, 0, err
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
