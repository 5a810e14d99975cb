package feed

import (
	"context"
	"errors"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
)

// maxScanned is how many of a log's newest records are searched in the journal, at most.
const maxScanned = 5120

// scan calls each with the records of a hub's log from the first one on that was stored at since or
// later, oldest first, until each returns false or an error. From the hub's stream come those whose
// subjects match a filter, and from the journal all that the stream lacks: while the stream is away
// or incomplete, the newest maxScanned of the log.
func (l *Logs) scan(
	ctx context.Context, hub domain.HubID, filter string, since time.Time,
	each func(m *stored) (more bool, err error),
) error {
	b, err := l.bounds(ctx, hub)
	if err != nil {
		return err
	}
	from, err := l.search(ctx, hub, b, since)
	if err != nil {
		return err
	}
	eachOf := func(found []stored) (more bool, err error) {
		for i := range found {
			if more, err := each(&found[i]); err != nil || !more {
				return false, err
			}
			from = found[i].seq + 1
		}
		return true, nil
	}
	for from <= b.streamed {
		var found []stored
		err := l.askStream(ctx, hub, func(ctx context.Context) (err error) {
			found, err = l.shard(hub).get(ctx, hub, jsapi.BatchRequest{
				From: from, Filter: filter, Messages: maxGet, Bytes: maxGetBytes,
			})
			return err
		})
		switch {
		case jsapi.IsTemporary(err):
			b.streamed = 0
		case err != nil:
			return err
		case len(found) == 0:
			from = b.streamed + 1
		}
		if more, err := eachOf(found); err != nil || !more {
			return err
		}
	}
	if b.streamed == 0 {
		from = max(from, b.last-min(b.last, maxScanned)+1)
	}
	for from <= b.last {
		found, err := l.journaled(ctx, hub, from, b.last)
		if errors.Is(err, journal.ErrGone) {
			return nil
		}
		if err != nil {
			return err
		}
		if more, err := eachOf(found); err != nil || !more {
			return err
		}
	}
	return nil
}
