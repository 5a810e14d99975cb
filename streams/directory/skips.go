package directory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// Skips gives the events that operators have a projection step over, by their sequence in its
// stream. It is fresh. What cannot be read under the projection's subject is passed over: it may be
// the very event that is in the way.
func (l *Log) Skips(
	ctx context.Context, projection string,
) (map[uint64]domain.ProjectionSkipped, error) {
	skips, _, err := l.skips(ctx, projection)
	return skips, err
}

// skips also gives the sequence of the subject's last event.
func (l *Log) skips(
	ctx context.Context, projection string,
) (map[uint64]domain.ProjectionSkipped, uint64, error) {
	subject := streams.ProjectionSubject(projection)
	skips := map[uint64]domain.ProjectionSkipped{}
	newest, err := l.api.GetLast(ctx, streams.DirectoryStream, subject)
	if errors.Is(err, jsapi.ErrNotFound) {
		return skips, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("directory: load %s: %w", subject, err)
	}
	err = l.loadRange(ctx, subject, 0, newest.Sequence, func(m jsapi.Message) error {
		_, fact, err := domain.DecodeEvent(m.Data)
		skip, ok := fact.(domain.ProjectionSkipped)
		if ok && err == nil && skip.Projection == projection {
			skips[skip.Sequence] = skip
		}
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("directory: load %s: %w", subject, err)
	}
	return skips, newest.Sequence, nil
}

// Skip records that a projection is to step over an event, once: an event that was skipped before
// is no event more.
func (l *Log) Skip(ctx context.Context, o domain.Origin, skip domain.ProjectionSkipped) error {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		skips, last, err := l.skips(ctx, skip.Projection)
		if err != nil {
			return err
		}
		if _, known := skips[skip.Sequence]; known {
			return nil
		}
		_, err = l.Append(
			ctx, streams.ProjectionSubject(skip.Projection), last, domain.Record(o, skip),
		)
		if !errors.Is(err, ErrConflict) || !sleep(ctx, pause) {
			return err
		}
	}
}

// Stored is an event with what is known of where it is stored.
type Stored struct {
	Recorded
	// Subject names its aggregate, also of an event that cannot be read.
	Subject string
	// StoredAt is when the broker took it.
	StoredAt time.Time
}

// At gives the first event at a sequence or behind it, and false when there is none.
func (l *Log) At(ctx context.Context, seq uint64) (event Stored, ok bool, err error) {
	m, err := l.api.GetNext(ctx, streams.DirectoryStream, seq, streams.DirectoryFilter)
	if errors.Is(err, jsapi.ErrNotFound) {
		return Stored{}, false, nil
	}
	if err != nil {
		return Stored{}, false, fmt.Errorf("directory: sequence %d: %w", seq, err)
	}
	read := []jsapi.Message{{Sequence: m.Sequence, Data: m.Data}}
	return Stored{
		Recorded: decode(m.Sequence-1, read)[0], Subject: m.Subject, StoredAt: m.Time,
	}, true, nil
}
