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
	// standByEvery is how often a process that stands by tries to take over, and how often the one that projects makes sure that it
	// still may.
	standByEvery = time.Second
	// lagsEvery is how often, of those times, the metrics learn how far the projections are behind.
	lagsEvery = 5
)

// RunProjector builds the read models from the directory and the presence bucket until ctx ends, or stands by for as long as
// another process does. It returns nil when ctx ends, and an error only when the broker's connection was closed for good: what
// goes wrong with an event or with the database is waited out, and shows in Status, Ready and the metrics.
func (s *Store) RunProjector(ctx context.Context, dir Directory, presence jetstream.KeyValue) error {
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
		s.log.Warn("cannot project at the moment; standing by", "error", err, "wait_ms", standByEvery.Milliseconds())
		pause(ctx, standByEvery)
	}
}

// standBy waits until the lock is this connection's. It asks rather than waits in the database: a waiting statement would keep
// the database from cleaning up for as long as it stands.
func (s *Store) standBy(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, noticeLostMachines); err != nil {
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

// project runs the projections for as long as the lock is held.
func (s *Store) project(ctx context.Context, conn *pgx.Conn, dir Directory, bucket jetstream.KeyValue) error {
	s.log.Info("building the read models", "schema", s.schema)
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
		lines.Go(func() error { return newLine(s, directory, &s.directory, dir, true).run(ctx) })
		lines.Go(func() error { return newLine(s, presence, &s.presence, dir, false).run(ctx) })
		return lines.Wait()
	})
	group.Go(func() error { return s.hold(ctx, conn, dir, bucket) })
	return group.Wait()
}

func newLine[E any](s *Store, from source[E], committed *progress, dir Directory, announce bool) *line[E] {
	return &line[E]{
		store: s, source: from, log: s.log.With("projection", from.name()), committed: committed, announce: announce, skips: dir.Skips,
	}
}

// hold returns an error as soon as the lock may be lost, which it is with its connection. Until then it keeps the metrics of how far the projections
// are behind their streams.
func (s *Store) hold(ctx context.Context, conn *pgx.Conn, dir Directory, presence jetstream.KeyValue) error {
	tick := time.NewTicker(standByEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		asking, cancel := context.WithTimeout(ctx, answerLimit)
		stops, err := query.New(conn).Stops(asking)
		if err == nil && n%lagsEvery == 0 {
			s.measure(asking, dir, presence)
		}
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

// measure tells the metrics how far the projections are behind their streams. What cannot be asked leaves them as they are.
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
