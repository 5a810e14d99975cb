package readmodel

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/time/rate"

	"hubcloud/projections/schema"
)

// pollInterval is how often the checkpoint is read without a notification. It bounds the delay of a
// waiter when a notification is lost.
const pollInterval = time.Second

// WaitFor returns nil once the first build of the read models is complete and they have the event
// at seq: later queries show it. It returns an error that wraps
// directory.ErrReadModelsStopped at once if the projection of the directory is stopped before seq,
// an error if the database has been away for patience, and ctx's error if ctx ends first.
func (s *Store) WaitFor(ctx context.Context, seq uint64) error {
	if err := s.directory.Wait(ctx, seq); err != nil {
		return err
	}
	select {
	case <-s.complete:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Position returns the position that WaitFor waits for. A projector in this process advances it
// with each commit, so that waiters need not wait for the notification.
func (s *Store) Position() *schema.Position { return &s.directory }

// SetBuildTarget sets the sequence that Ready shows as the end of the first build.
func (s *Store) SetBuildTarget(seq uint64) { s.buildTarget.Store(seq) }

// errGone ends the waits for a database that has been away for longer than patience.
var errGone = errors.New("the database does not answer")

// listen keeps s.directory at the last committed checkpoint until ctx ends.
func (s *Store) listen(ctx context.Context) {
	var lost outage
	warn := rate.Sometimes{First: 1, Interval: schema.WarnInterval}
	for wait := schema.FirstRetry; ctx.Err() == nil; wait = min(2*wait, schema.LastRetry) {
		began := time.Now()
		err := s.withConn(ctx, func(conn *pgx.Conn) error {
			return s.listenOn(ctx, conn, func() { lost.answered(); began = time.Now() })
		})
		if ctx.Err() != nil {
			return
		}
		until, first := lost.failed(began)
		if first {
			wait = schema.FirstRetry
		}
		if Rejects(err) {
			s.rejected.Store(&err)
		}
		if Rejects(err) || time.Now().After(until) {
			s.directory.Stop(fmt.Errorf("%w: %w", errGone, err))
		}
		warn.Do(func() {
			s.logger.Warn(
				"read model listener lost the database", "error", err,
				"retry_ms", wait.Milliseconds(),
			)
		})
		schema.Pause(ctx, wait)
	}
}

// listenOn listens before it reads the checkpoint, so that it misses no commit in between. It calls
// answered each time the database has answered.
func (s *Store) listenOn(ctx context.Context, conn *pgx.Conn, answered func()) error {
	if err := s.beginListening(ctx, conn); err != nil {
		return err
	}
	for {
		if err := s.readCheckpoint(ctx, conn); err != nil {
			return err
		}
		answered()
		if err := s.receiveNotifications(ctx, conn, time.Now().Add(pollInterval)); err != nil {
			return err
		}
	}
}

// beginListening makes the session listen for commits, within schema.CommitTimeout.
func (s *Store) beginListening(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, schema.CommitTimeout)
	defer cancel()
	if err := schema.CheckSession(ctx, s.dial, conn); err != nil {
		return err
	}
	if err := schema.DetectLostClient(ctx, conn); err != nil {
		return err
	}
	// The shared lock keeps others from dropping the schema.
	if err := schema.ServingLock(s.schema).Share(ctx, conn); err != nil {
		return err
	}
	// The schema may have been dropped before this session had the lock.
	if err := s.claim(ctx, conn); err != nil {
		return err
	}
	_, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{s.schema}.Sanitize())
	return err
}

// receiveNotifications advances the position with each commit until the deadline. It returns early
// on a notification without a sequence: a projection has stopped or was resumed.
func (s *Store) receiveNotifications(
	ctx context.Context, conn *pgx.Conn, deadline time.Time,
) error {
	for {
		payload, ok, err := schema.AwaitNotification(ctx, conn, time.Until(deadline))
		if err != nil || !ok {
			return err
		}
		seq, err := strconv.ParseUint(payload, 10, 64)
		if err != nil {
			return nil
		}
		s.directory.Advance(seq)
	}
}

// readCheckpoint sets the position to the checkpoint, and stops it while the projection is stopped.
func (s *Store) readCheckpoint(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, schema.AnswerTimeout)
	defer cancel()
	queries := schema.New(conn)
	if err := s.checkComplete(ctx, queries); err != nil {
		return err
	}
	_, version := s.directory.Read()
	rows, err := queries.Checkpoints(ctx)
	if err != nil {
		return err
	}
	stops, err := queries.Stops(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.Projection == schema.Directory {
			s.directory.Set(uint64(row.Sequence), version)
			s.directory.Stop(schema.CheckRunning(row, stops))
		}
	}
	return nil
}
