package directory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
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
	newest, _, err := l.newest(ctx, subject)
	if err != nil {
		return nil, 0, fmt.Errorf("directory: load %s: %w", subject, err)
	}
	skips := map[uint64]domain.ProjectionSkipped{}
	last := uint64(0)
	err = persist(ctx, func(ctx context.Context) (again bool, err error) {
		for last < newest.seq {
			msgs, err := l.read(ctx, subject, last+1)
			if err == nil && len(msgs) == 0 {
				err = errBehind
			}
			if err != nil {
				return true, err
			}
			for _, m := range msgs {
				last = m.seq
				_, fact, err := domain.DecodeEvent(m.data)
				if skip, ok := fact.(domain.ProjectionSkipped); ok && err == nil &&
					skip.Projection == projection {
					skips[skip.Sequence] = skip
				}
			}
		}
		return false, nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("directory: load %s: %w", subject, err)
	}
	return skips, newest.seq, nil
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
	question := fmt.Appendf(nil, `{"seq":%d,"next_by_subj":%q}`, seq, streams.DirectoryFilter)
	m, ok, err := l.ask(ctx, question)
	if err != nil {
		return Stored{}, false, fmt.Errorf("directory: sequence %d: %w", seq, err)
	}
	if !ok {
		return Stored{}, false, nil
	}
	return Stored{
		Recorded: decode(m.seq-1, []stored{m})[0],
		Subject:  m.subject,
		StoredAt: m.at,
	}, true, nil
}
