package projector_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
	"hubcloud/projections/projectionstest"
	"hubcloud/projections/projector"
	"hubcloud/projections/readmodel"
	"hubcloud/projections/schema"
	"hubcloud/streams/directory"
	"hubcloud/streams/streamstest"
)

// hangs takes a lock like a process that hangs afterwards. It runs then on a second connection.
func hangs(
	t *testing.T, s *readmodel.Store, wanted schema.Lock,
	then func(ctx context.Context, conn *pgx.Conn) error,
) (lock, writing *pgx.Conn) {
	t.Helper()
	connect := func() *pgx.Conn {
		conn, err := pgx.ConnectConfig(t.Context(), s.ConnConfig())
		streamstest.Must(t, err)
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		return conn
	}
	lock, writing = connect(), connect()
	streamstest.Must(t, schema.EndWhenSilent(t.Context(), lock))
	// The server may not have ended the last projector's session yet, which has the lock until
	// then.
	streamstest.Eventually(t, "the lock is free", func() bool {
		mine, err := wanted.Try(t.Context(), lock)
		streamstest.Must(t, err)
		return mine
	})
	streamstest.Must(t, then(t.Context(), writing))
	return lock, writing
}

// newProjector returns a projector that does not run.
func newProjector(t *testing.T, w *projectionstest.Env, s *readmodel.Store) *projector.Projector {
	t.Helper()
	p, err := projector.New(w.ProjectorConfig(t, s))
	streamstest.Must(t, err)
	return p
}

// A projector that was stopped by SIGSTOP, or cut off, kept its lock meanwhile, and no replica
// answered a change. What it has begun must not be committed once another process projects.
func TestHangingProjectorLosesItsLock(t *testing.T) {
	t.Parallel()
	for name, hang := range map[string]func(ctx context.Context, conn *pgx.Conn) error{
		"between batches": func(context.Context, *pgx.Conn) error { return nil },
		"within a batch": func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "BEGIN; UPDATE checkpoints SET sequence = sequence + 1000")
			return err
		},
		"within a batch, no session timeout": func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "SET idle_in_transaction_session_timeout = 0; BEGIN; UPDATE "+
				"checkpoints SET sequence = sequence + 1000")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := projectionstest.New(t)
			s := w.OpenStore(t)
			end := w.Project(t, s).Stop
			projectionstest.Await(t, s, w.AddSite(t, org, 1))
			end()
			var term int64
			lock, writing := hangs(
				t,
				s,
				schema.ProjectorLock(s.Schema()),
				func(ctx context.Context, conn *pgx.Conn) (err error) {
					if term, err = projector.TakeOver(ctx, conn); err != nil {
						return err
					}
					return hang(ctx, conn)
				},
			)
			begun := time.Now()
			w.Project(t, s)
			projectionstest.Await(t, s, w.AddSite(t, org, 2))
			t.Logf("taken over after %s", time.Since(begun))
			// The projector that hung continues.
			if _, err := writing.Exec(t.Context(), "COMMIT"); name != "between batches" &&
				err == nil {
				t.Error("the projector that hung has committed its batch")
			}
			if _, err := schema.New(lock).Stops(t.Context()); err == nil {
				t.Error("the projector that hung still has its lock")
			}
			stale := newProjector(t, w, s)
			err := stale.RunOnce(t.Context(), term)
			if !errors.Is(err, projector.ErrTakenOver) {
				t.Errorf("run of the projector that hung: got %v, want ErrTakenOver", err)
			}
			if page, err := s.Sites(t.Context(), domain.Reach{OrgID: org}, 50, ""); err != nil || len(page.Data) != 2 {
				t.Errorf("Sites: got %+v, %v, want both sites", page, err)
			}
		})
	}
}

// Writes of a projector fail once another has taken over, even at the right checkpoint.
func TestOnlyTheLatestTermCommits(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	s := w.OpenStore(t)
	first := w.AddSite(t, org, 1)
	err := schema.WithConn(t.Context(), s.ConnConfig(), func(conn *pgx.Conn) error {
		old, err := projector.TakeOver(t.Context(), conn)
		if err != nil {
			return err
		}
		next, err := projector.TakeOver(t.Context(), conn)
		if err != nil || next <= old {
			t.Errorf("term %d after %d, %v, want a later one", next, old, err)
		}
		var history []directory.Recorded
		if err := w.Directory.Replay(t.Context(), 0, first, func(batch []directory.Recorded) error {
			history = append(history, batch...)
			return nil
		}); err != nil {
			return err
		}
		write := func(term int64) error {
			return (&projector.Writer[directory.Recorded]{
				Source: &projector.DirectorySource{Log: w.Directory}, Conn: conn, Term: term,
				RespectStops: true,
			}).Apply(t.Context(), history)
		}
		if err := write(old); !errors.Is(err, projector.ErrMoved) {
			t.Errorf("Apply of the old term: got %v, want errMoved", err)
		}
		stopped := &schema.StoppedError{
			Projection: schema.Directory,
			Sequence:   first,
			Err:        domain.ErrUnknownEvent,
		}
		stale := newProjector(t, w, s)
		if stale.RecordStop(t.Context(), old, projector.Checkpoint{}, stopped) {
			t.Error("RecordStop of the old term returned true")
		}
		// The stop was recorded in read models that a rebuild had put in place meanwhile.
		for _, at := range []projector.Checkpoint{{Sequence: first}, {EventID: "of another stream"}} {
			if stale.RecordStop(t.Context(), next, at, stopped) {
				t.Errorf("RecordStop at another checkpoint, %+v, returned true", at)
			}
		}
		return write(next)
	})
	if err != nil {
		t.Error(err)
	}
	if err := s.Ready(t.Context()); !errors.Is(err, schema.ErrBuilding) ||
		errors.Is(err, directory.ErrReadModelsStopped) {
		t.Errorf("Ready: got %v, want ErrBuilding without a stop", err)
	}
	// A rebuild keeps the term: the projector continues in the new read models.
	projecting := w.Project(t, s)
	streamstest.Eventually(t, "ready", func() bool { return s.Ready(t.Context()) == nil })
	streamstest.Must(t, w.Control(t).Rebuild(t.Context(), nil))
	projectionstest.Await(t, s, w.AddSite(t, org, 2))
	if !projecting.MetricIs(t, "leading", "", 1) {
		t.Error("the projector does not lead")
	}
}

// A rebuild that hangs does not delay others.
func TestHangingBuildLosesItsLock(t *testing.T) {
	t.Parallel()
	w, s := projectionstest.NewProjected(t)
	projectionstest.Await(t, s, w.AddSite(t, org, 1))
	hangs(t, s, schema.BuildLock(s.Schema()), func(ctx context.Context, conn *pgx.Conn) error {
		// as a switch does
		_, err := conn.Exec(ctx, "BEGIN; LOCK TABLE checkpoints IN ACCESS EXCLUSIVE MODE")
		return err
	})
	last := w.AddSite(t, org, 2)
	streamstest.Must(t, w.Control(t).Rebuild(t.Context(), nil))
	projectionstest.Await(t, s, last)
	// The same while it holds the lock of installations.
	hangs(t, s, schema.BuildLock(s.Schema()), func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "BEGIN")
		if err == nil {
			err = schema.InstallLock().Take(ctx, conn)
		}
		return err
	})
	w.OpenStore(t)
}
