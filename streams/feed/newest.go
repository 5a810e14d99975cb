package feed

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/journal"
)

const (
	// newestChunk is how many records are read from the journal at once, backwards.
	newestChunk = 256
	// maxNewest is how many of a log's newest records are searched in the journal, at most.
	maxNewest = 20 * newestChunk
)

// newestCommands is CommandRecords from the journal, for as long as the hub's stream is away. It
// searches the log's newest maxNewest records.
func (l *Logs) newestCommands(
	ctx context.Context, hub domain.HubID, since time.Time, limit int,
) ([]domain.LoggedCommand, error) {
	tip, _ := l.cfg.Journal.Tip(hub)
	var newestFirst []domain.LoggedCommand
	err := l.newest(ctx, hub, tip.Seq, func(r *journal.Record) (more bool) {
		if r.Time.Before(since) {
			return false
		}
		if r.Kind == journal.KindCommand {
			newestFirst = append(newestFirst, l.loggedCommand(hub, r.Seq, r.Time, r.Payload))
		}
		return len(newestFirst) < limit
	})
	slices.Reverse(newestFirst)
	return newestFirst, err
}

// newest calls visit with the records that the journal has of a hub up to a sequence, the newest
// first, until visit returns false or maxNewest were visited.
func (l *Logs) newest(
	ctx context.Context, hub domain.HubID, to uint64, visit func(*journal.Record) (more bool),
) error {
	lowest := uint64(1)
	if to > maxNewest {
		lowest = to - maxNewest + 1
	}
	for to >= lowest {
		from := lowest
		if to-lowest >= newestChunk {
			from = to - newestChunk + 1
		}
		records, err := l.cfg.Journal.Records(ctx, hub, from, to, math.MaxInt)
		if errors.Is(err, journal.ErrGone) {
			oldest, oldestErr := l.cfg.Journal.Oldest(ctx, hub, time.Time{})
			switch {
			case errors.Is(oldestErr, journal.ErrGone), oldestErr == nil && oldest > to:
				return nil
			case oldestErr != nil:
				return oldestErr
			case oldest > from:
				lowest = oldest
				continue
			}
		}
		if err != nil {
			return err
		}
		for i := range slices.Backward(records) {
			if !visit(&records[i]) {
				return nil
			}
		}
		to = from - 1
	}
	return nil
}
