package projections

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"hubcloud/projections/internal/query"
)

const (
	// standByEvery is how often a process that stands by tries to take over.
	standByEvery = 500 * time.Millisecond
	// holdEvery is how often the process that projects makes sure that it still may, and lets the
	// database hear of it: several times in silenceLimit. holdLimit bounds the answer.
	holdEvery, holdLimit = 500 * time.Millisecond, 2 * time.Second
	// lagsEvery is how often the metrics learn how far the projections are behind.
	lagsEvery = 5 * time.Second
)

// RunProjector builds the read models from the directory and the presence bucket until ctx ends, or
// stands by for as long as another process does. It returns nil when ctx ends, and an error only
// when the broker's connection was closed for good: what goes wrong with an event or with the
// database is waited out, and shows in Status, Ready and the metrics.
func (s *Store) RunProjector(
	ctx context.Context, dir Directory, presence jetstream.KeyValue,
) error {
	for {
		err := s.with(ctx, func(conn *pgx.Conn) error {
			if err := s.standBy(ctx, conn); err != nil {
				return err
			}
			return s.project(ctx, conn, dir, presence)
		})
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, nats.ErrConnectionClosed) {
			return err
		}
		s.log.Warn(
			"cannot project at the moment; standing by", "error", err,
			"wait_ms", standByEvery.Milliseconds(),
		)
		pause(ctx, standByEvery)
	}
}

// standBy waits until the lock is this connection's. It asks rather than waits in the database: a
// waiting statement would keep the database from cleaning up for as long as it stands.
func (s *Store) standBy(ctx context.Context, conn *pgx.Conn) error {
	if err := endWhenSilent(ctx, conn); err != nil {
		return err
	}
	for told := false; ; {
		mine, err := tryLock(ctx, conn, lockSpace, lockOf(s.schema))
		if err != nil || mine {
			return err
		}
		if !told {
			s.log.Info("another process builds the read models; standing by", "schema", s.schema)
			told = true
		}
		pause(ctx, standByEvery)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// takeOver returns the term of this projector, once nothing of the projector before it can be
// committed any more. The lock must be held. A process that hangs, or was cut off, in the midst of
// a transaction is not waited for: its session is ended.
func takeOver(ctx context.Context, conn *pgx.Conn) (term int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, sessionLimit/2)
	defer cancel()
	if _, err := conn.Exec(ctx, writers); err != nil {
		return 0, err
	}
	return query.New(conn).TakeOver(ctx)
}

// project runs the projections for as long as the lock is held.
func (s *Store) project(
	ctx context.Context, conn *pgx.Conn, dir Directory, bucket jetstream.KeyValue,
) error {
	term, err := takeOver(ctx, conn)
	if err != nil {
		return fmt.Errorf("take over from the last projector: %w", err)
	}
	s.log.Info("building the read models", "schema", s.schema, "term", term)
	s.metrics.leading.Set(1)
	defer s.metrics.resign()
	presence := &presenceSource{bucket: bucket}
	directory := &directorySource{log: dir, presence: &s.presence, presenceHead: presence.head}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := s.install(ctx, dir, bucket); err != nil {
			return err
		}
		lines, ctx := errgroup.WithContext(ctx)
		lines.Go(
			func() error { return newLine(s, directory, &s.directory, dir, term, true).run(ctx) },
		)
		lines.Go(
			func() error { return newLine(s, presence, &s.presence, dir, term, false).run(ctx) },
		)
		return lines.Wait()
	})
	group.Go(func() error { return s.hold(ctx, conn) })
	group.Go(func() error { s.measureLags(ctx, dir, bucket); return nil })
	return group.Wait()
}

func newLine[E any](
	s *Store, from source[E], committed *progress, dir Directory, term int64, announce bool,
) *line[E] {
	return &line[E]{
		store: s, source: from, log: s.log.With("projection", from.name()), committed: committed,
		term: term, announce: announce, skips: dir.Skips,
	}
}

// hold returns an error as soon as the lock may be lost, which it is with its connection. Nothing
// but the database may hold it up.
func (s *Store) hold(ctx context.Context, conn *pgx.Conn) error {
	tick := time.NewTicker(holdEvery)
	defer tick.Stop()
	for {
		asking, cancel := context.WithTimeout(ctx, holdLimit)
		stops, err := query.New(conn).Stops(asking)
		cancel()
		if err != nil {
			return fmt.Errorf("the projector's lock: %w", err)
		}
		s.metrics.hold(stops)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// measureLags keeps the metrics of how far the projections are behind their streams, until ctx
// ends.
func (s *Store) measureLags(ctx context.Context, dir Directory, presence jetstream.KeyValue) {
	for ctx.Err() == nil {
		asking, cancel := context.WithTimeout(ctx, answerLimit)
		s.measure(asking, dir, presence)
		cancel()
		pause(ctx, lagsEvery)
	}
}

// measure tells the metrics how far the projections are behind their streams. What cannot be asked
// leaves them as they are.
func (s *Store) measure(ctx context.Context, dir Directory, presence jetstream.KeyValue) {
	all, err := s.Status(ctx, dir, presence)
	if err != nil {
		return
	}
	for _, status := range all {
		s.metrics.head.WithLabelValues(status.Name).Set(float64(status.Head))
		s.metrics.lagEvents.WithLabelValues(status.Name).Set(float64(status.Lag))
		s.metrics.lagSeconds.WithLabelValues(status.Name).Set(status.Behind.Seconds())
	}
}
