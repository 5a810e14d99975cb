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

// Skips returns the events that a projection must skip by order of an operator, keyed by their
// sequence in the projection's stream. The result includes every Skip acknowledged before the call.
// Skips ignores unreadable events under the projection's subject: one of them may be the event to
// skip.
func (l *Log) Skips(
	ctx context.Context, projection string,
) (map[uint64]domain.ProjectionSkipped, error) {
	skips, _, err := l.skips(ctx, projection)
	return skips, err
}

// skips returns what Skips returns and the sequence of the subject's last event.
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

// Skip records that a projection must skip an event. It stores nothing if the event is skipped
// already.
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

// Stored is an event with its subject and storage time. Both are set even if the event cannot be
// read.
type Stored struct {
	Recorded
	// Subject names the aggregate.
	Subject string
	// StoredAt is when the broker stored the event.
	StoredAt time.Time
}

// At returns the first event at or after a sequence, and false if there is none.
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
