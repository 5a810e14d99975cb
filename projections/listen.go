package projections

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections/internal/query"
)

// lookEvery is how often the checkpoint is looked at without having been told of anything: what
// bounds the delay of a waiter if a notification does not come, whatever the reason.
const lookEvery = time.Second

// WaitFor returns nil once the read models have the directory up to and including seq: what is
// queried afterwards shows it. It returns directory.ErrStandingStill when they stand still before
// it, at once, and ctx's error when it takes too long.
func (s *Store) WaitFor(ctx context.Context, seq uint64) error {
	if err := s.directory.wait(ctx, seq); err != nil {
		return err
	}
	select {
	case <-s.complete:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// listen keeps s.directory at the checkpoint that whichever process projects has committed, until
// ctx ends.
func (s *Store) listen(ctx context.Context) {
	for wait := firstRetry; ctx.Err() == nil; wait = min(2*wait, lastRetry) {
		connected := time.Now()
		err := s.with(ctx, func(conn *pgx.Conn) error { return s.listenOn(ctx, conn) })
		if ctx.Err() != nil {
			return
		}
		if time.Since(connected) > lastRetry {
			wait = firstRetry
		}
		s.log.Warn(
			"lost touch with the read models' database; connecting again", "error", err,
			"wait_ms", wait.Milliseconds(),
		)
		pause(ctx, wait)
	}
}

// listenOn listens first, then looks, so that nothing committed in between is missed.
func (s *Store) listenOn(ctx context.Context, conn *pgx.Conn) error {
	if err := s.beginListening(ctx, conn); err != nil {
		return err
	}
	for {
		if err := s.look(ctx, conn); err != nil {
			return err
		}
		for next := time.Now().Add(lookEvery); time.Now().Before(next); {
			waiting, cancel := context.WithDeadline(ctx, next)
			heard, err := conn.WaitForNotification(waiting)
			cancel()
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil && waiting.Err() == nil:
				return err
			case err == nil:
				seq, err := strconv.ParseUint(heard.Payload, 10, 64)
				if err != nil { // it stands still, or does no longer
					next = time.Now()
					continue
				}
				s.directory.advance(seq)
			}
		}
	}
}

// beginListening makes a connection hear of commits. A database that cannot be reached any more is
// not waited for longer than commitLimit.
func (s *Store) beginListening(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, commitLimit)
	defer cancel()
	if _, err := conn.Exec(ctx, noticeLostMachines); err != nil {
		return err
	}
	// Whoever drops schemas sees by this that somebody reads from it.
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock_shared($1::int, $2::int)", lockServing, lockOf(s.schema)); err != nil {
		return err
	}
	// It may have been dropped before that.
	if err := install(ctx, conn, s.schema, s.installation); err != nil {
		return err
	}
	_, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{s.schema}.Sanitize())
	return err
}

func (s *Store) look(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	if err := s.lookComplete(ctx, query.New(conn)); err != nil {
		return err
	}
	_, changes := s.directory.position()
	rows, err := query.New(conn).Checkpoints(ctx)
	if err != nil {
		return err
	}
	stops, err := query.New(conn).Stops(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.Projection == DirectoryProjection {
			s.directory.set(uint64(row.Sequence), changes)
			s.directory.halt(whyStill(row, stops))
		}
	}
	return nil
}
