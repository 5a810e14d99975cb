package projections

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hubcloud/domain"
	"hubcloud/projections/internal/query"
	"hubcloud/streams/directory"
)

// hangs takes a lock as a process does that hangs afterwards, once then has been run on another of
// its connections.
func hangs(
	t *testing.T, s *Store, space int32, then func(ctx context.Context, conn *pgx.Conn) error,
) (lock, writing *pgx.Conn) {
	t.Helper()
	connect := func() *pgx.Conn {
		conn, err := pgx.ConnectConfig(t.Context(), s.dial.Copy())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		return conn
	}
	lock, writing = connect(), connect()
	if err := endWhenSilent(t.Context(), lock); err != nil {
		t.Fatal(err)
	}
	if mine, err := tryLock(t.Context(), lock, space, lockOf(s.schema)); err != nil || !mine {
		t.Fatalf("the lock is mine: %v, %v", mine, err)
	}
	if err := then(t.Context(), writing); err != nil {
		t.Fatal(err)
	}
	return lock, writing
}

// A process that was stopped by SIGSTOP, or cut off, while it projected kept the lock for as long
// as that lasted: no change was answered by any replica. What it has begun must not be committed
// once another one projects.
func TestAProjectorThatHangsLosesItsLock(t *testing.T) {
	t.Parallel()
	for name, hang := range map[string]func(ctx context.Context, conn *pgx.Conn) error{
		"between batches": func(context.Context, *pgx.Conn) error { return nil },
		"in the midst of a batch": func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "BEGIN; UPDATE checkpoints SET sequence = sequence + 1000")
			return err
		},
		"in the midst of a batch, on a server that ends no sessions": func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "SET idle_in_transaction_session_timeout = 0; BEGIN; UPDATE "+
				"checkpoints SET sequence = sequence + 1000")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := w.open(t)
			end := w.project(t, s)
			await(t, s, w.site(t, org, 1))
			end()
			var term int64
			lock, writing := hangs(
				t,
				s,
				lockSpace,
				func(ctx context.Context, conn *pgx.Conn) (err error) {
					if term, err = takeOver(ctx, conn); err != nil {
						return err
					}
					return hang(ctx, conn)
				},
			)
			begun := time.Now()
			w.project(t, s)
			await(t, s, w.site(t, org, 2))
			t.Logf("taken over after %s", time.Since(begun))
			// The one that hung wakes up.
			if _, err := writing.Exec(t.Context(), "COMMIT"); name != "between batches" &&
				err == nil {
				t.Error("the one that hung has committed its batch")
			}
			if _, err := query.New(lock).Stops(t.Context()); err == nil {
				t.Error("the one that hung still has its lock")
			}
			stale := newLine(s, &directorySource{log: w.dir}, &progress{}, w.dir, term, true)
			err := s.with(
				t.Context(),
				func(conn *pgx.Conn) error { return newPass(stale, conn).run(t.Context()) },
			)
			if !errors.Is(err, errDeposed) {
				t.Errorf("the one that hung goes on: %v", err)
			}
			if page, err := s.Sites(t.Context(), org, 50, ""); err != nil || len(page.Data) != 2 {
				t.Errorf("%+v, %v", page, err)
			}
		})
	}
}

// Whatever a projector has under way when another takes over fails, also what is at the right
// checkpoint.
func TestOnlyTheLastProjectorCommits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open(t)
	first := w.site(t, org, 1)
	err := s.with(t.Context(), func(conn *pgx.Conn) error {
		old, err := takeOver(t.Context(), conn)
		if err != nil {
			return err
		}
		next, err := takeOver(t.Context(), conn)
		if err != nil || next <= old {
			t.Errorf("term %d after %d, %v", next, old, err)
		}
		var history []directory.Recorded
		if err := w.dir.Replay(t.Context(), 0, first, func(batch []directory.Recorded) error {
			history = append(history, batch...)
			return nil
		}); err != nil {
			return err
		}
		write := func(term int64) error {
			return (&writer[directory.Recorded]{
				source: &directorySource{log: w.dir}, conn: conn, term: term, heeds: true,
			}).apply(t.Context(), history)
		}
		if err := write(old); !errors.Is(err, errMoved) {
			t.Errorf("the old one has written: %v", err)
		}
		stopped := &StoppedError{
			Projection: DirectoryProjection,
			Sequence:   first,
			Err:        domain.ErrUnknownEvent,
		}
		if newLine(
			s, &directorySource{log: w.dir}, &progress{}, w.dir, old, true,
		).stop(t.Context(), checkpoint{}, stopped) {
			t.Error("the old one has stopped the projection")
		}
		return write(next)
	})
	if err != nil {
		t.Error(err)
	}
	if err := s.Ready(t.Context()); !errors.Is(err, ErrBuilding) ||
		errors.Is(err, directory.ErrStandingStill) {
		t.Errorf("the old one has stopped the projection: %v", err)
	}
	// The read models that take the place of others are of the same term, or the projector could
	// not go on in them.
	w.project(t, s)
	within(t, "ready", func() bool { return s.Ready(t.Context()) == nil })
	if err := w.control(t).Rebuild(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	await(t, s, w.site(t, org, 2))
	if got := testutil.ToFloat64(s.metrics.leading); got != 1 {
		t.Errorf("the metric says %v", got)
	}
}

// An operator's command that hangs holds up nobody either.
func TestABuilderThatHangsLosesItsLock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open(t)
	w.project(t, s)
	await(t, s, w.site(t, org, 1))
	hangs(t, s, lockBuilds, func(ctx context.Context, conn *pgx.Conn) error {
		// as a switch does
		_, err := conn.Exec(ctx, "BEGIN; LOCK TABLE checkpoints IN ACCESS EXCLUSIVE MODE")
		return err
	})
	last := w.site(t, org, 2)
	if err := w.control(t).Rebuild(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	await(t, s, last)
	// And while it installs or drops read models.
	hangs(t, s, lockBuilds, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "BEGIN")
		if err == nil {
			_, err = conn.Exec(
				ctx, "SELECT pg_advisory_xact_lock($1::int, $2::int)", lockSpace, lockInstall,
			)
		}
		return err
	})
	w.open(t)
}
