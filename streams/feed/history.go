package feed

import (
	"context"
	"fmt"

	"hubcloud/domain"
)

// maxShardLoads bounds the loads of one shard under way, and with them the memory for messages on
// their way to readers.
const maxShardLoads = 4

// goneError means that messages from a wanted sequence on have expired.
type goneError struct {
	// first is the sequence with which the stream begins now.
	first uint64
}

func (e *goneError) Error() string {
	return fmt.Sprintf("the log begins with sequence %d now", e.first)
}

// logEpoch is one epoch of a hub's log.
type logEpoch struct {
	hub   domain.HubID
	epoch domain.Epoch
}

// history returns the events from sequence from to to, both included, that fit into wanted.
// Everything up to to must have been stored. events is complete up to the sequence through; left is
// the space after them. With atLeastOne the first event is returned whatever its size. Callers may
// append to the slice but not change it. The error is a *goneError when a wanted message has
// expired.
func (l *Logs) history(
	ctx context.Context, log logEpoch, from, to uint64, wanted space, atLeastOne bool,
) (events []domain.EncodedEvent, through uint64, left space, err error) {
	left = wanted
	through = from - 1
	for through < to && !left.exhausted() {
		found, covered, wait := l.cache.find(log.hub, log.epoch.ID, through+1)
		if wait != nil {
			select {
			case <-wait:
			case <-ctx.Done():
				return nil, 0, left, ctx.Err()
			}
			continue
		}
		if covered == 0 {
			if found, covered, err = l.load(ctx, log, through+1, to, left.events); err != nil {
				return nil, 0, left, err
			}
			if covered == 0 {
				continue
			}
		}
		found, through, left = clip(found, covered, to, left, atLeastOne && len(events) == 0)
		events = join(events, found)
	}
	return events, through, left, nil
}

// join appends more to events without changing the array under more.
func join(events, more []domain.EncodedEvent) []domain.EncodedEvent {
	if events == nil {
		return more[:len(more):len(more)]
	}
	return append(events, more...)
}

// clip cuts events, which are complete up to the sequence covered, to those up to the sequence to
// that fit into left. It returns them, the sequence up to which they are complete, and the space
// after them.
func clip(
	events []domain.EncodedEvent, covered, to uint64, left space, atLeastOne bool,
) ([]domain.EncodedEvent, uint64, space) {
	for len(events) > 0 && events[len(events)-1].Seq > to {
		events = events[:len(events)-1]
	}
	fitting, left := left.fit(events, atLeastOne)
	switch {
	case len(fitting) == len(events):
		return fitting, min(covered, to), left
	case len(fitting) == 0:
		return fitting, events[0].Seq - 1, left
	default:
		return fitting, fitting[len(fitting)-1].Seq, left
	}
}

// load reads messages from the stream into the cache, starting at from: about as many as limit, but
// not beyond to nor into blocks that are cached or being loaded. It returns the events from from on
// and the sequence up to which they are complete; 0 means that another load has come first.
func (l *Logs) load(
	ctx context.Context, log logEpoch, from, to uint64, limit int,
) (events []domain.EncodedEvent, through uint64, err error) {
	// Read to the end of the block: more messages cost less than another request.
	to = min(to, max(from+uint64(limit)-1, blockEnd(from)))
	slots := l.shard(log.hub).loadSlots
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	under := l.cache.begin(log.hub, log.epoch.ID, from, to)
	if under == nil {
		return nil, 0, nil
	}
	defer l.cache.finish(under)
	l.metrics.cacheMisses.Inc()
	messages, err := l.records(ctx, log.hub, under.from, under.to)
	if err != nil {
		return nil, 0, err
	}
	events = make([]domain.EncodedEvent, 0, len(messages))
	for _, m := range messages {
		if !m.event || !log.epoch.Has(m.seq, m.epoch) {
			continue
		}
		e, err := m.encode()
		if err != nil {
			l.cfg.Logger.Error("event in hub log unreadable", "hub_id", log.hub, "error", err)
			continue
		}
		events = append(events, e)
	}
	first, last := messages[0].seq, messages[len(messages)-1].seq
	l.cache.add(under, first, last, events)
	if first > from {
		return nil, 0, &goneError{first}
	}
	if last < from {
		return nil, 0, nil // the load began before from and was cut: the next one goes on
	}
	// A load may begin before from to join what its first block holds.
	for len(events) > 0 && events[0].Seq < from {
		events = events[1:]
	}
	return events, last, nil
}
