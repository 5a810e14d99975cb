package rebuild

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections/apply"
	"hubcloud/projections/database"
	"hubcloud/projections/internal/position"
	"hubcloud/projections/internal/query"
	"hubcloud/projections/schema"
)

const (
	// reportInterval is the time between two reports of a build. Each report runs a statement on
	// the connection that holds the lock, so the interval must be well below database.SilenceLimit.
	reportInterval = 500 * time.Millisecond
	// cleanupTimeout bounds the cleanup after a build.
	cleanupTimeout = 20 * time.Second
)

// build is one build under way.
type build struct {
	cfg      Config
	presence *apply.PresenceSource
	// purpose is one of the Purpose constants; target is the schema that is built.
	purpose, target string
	begun           time.Time
	// conn holds the BuildLock. connMu must be locked by the goroutine that uses conn.
	connMu sync.Mutex
	conn   *pgx.Conn

	// phase is one of the Phase constants, a string.
	phase atomic.Value
	// directoryAt and presenceAt are the checkpoints of the target's tables.
	directoryAt, presenceAt position.Position
	// journalsAt is the sum of the positions of a copy of last reported states in the journals.
	journalsAt position.Position
	// head is the sequence of the directory's last event, or the sum of those of the journals' last
	// commits, as last read.
	head atomic.Uint64
}

// run runs fn, reports progress meanwhile, and cleans up.
func (b *build) run(ctx context.Context, fn func(ctx context.Context, build *build) error) error {
	b.phase.Store(PhaseLoad)
	working, cancel := context.WithCancelCause(ctx)
	var reporting sync.WaitGroup
	reporting.Go(func() { b.reportProgress(working, cancel) })
	err := fn(working, b)
	if cause := context.Cause(working); err != nil && cause != nil && ctx.Err() == nil {
		err = cause
	}
	cancel(nil)
	reporting.Wait()
	b.end(context.WithoutCancel(ctx), err)
	return err
}

// end records the outcome, and drops the build's schema if it still has its name: a switch renames
// it. end uses a connection of its own, since the one that holds the lock may be lost. It needs no
// lock, since no other build has a schema of that name. If it fails, the next build drops the
// schema.
func (b *build) end(ctx context.Context, outcome error) {
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	b.phase.Store(PhaseDone)
	if outcome != nil {
		b.phase.Store(PhaseFailed)
	}
	err := database.WithConn(ctx, b.cfg.ConnConfig, func(conn *pgx.Conn) error {
		return errors.Join(b.recordProgress(ctx, conn), schema.Drop(ctx, conn, b.target))
	})
	if err != nil {
		b.cfg.Logger.Warn(
			"cleanup after a build failed; the next build cleans up", "schema", b.target,
			"error", err,
		)
	}
	b.cfg.Report(b.progress(0))
}

// reportProgress records and reports the progress until ctx ends. If it cannot record the progress,
// the lock may be lost: then it cancels the build by calling lost.
func (b *build) reportProgress(ctx context.Context, lost context.CancelCauseFunc) {
	tick := time.NewTicker(reportInterval)
	defer tick.Stop()
	var speed speedometer
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if b.connMu.TryLock() { // otherwise a switch uses the connection, which keeps the lock too
			err := b.recordProgress(ctx, b.conn)
			b.connMu.Unlock()
			if err != nil && ctx.Err() == nil {
				lost(fmt.Errorf("the lock of the build: %w", err))
				return
			}
		}
		b.cfg.Report(b.progress(speed.measure(b.at(), time.Now())))
	}
}

// at returns how far the build is, as head is counted.
func (b *build) at() uint64 { return max(b.directoryAt.At(), b.journalsAt.At()) }

func (b *build) progress(perSecond float64) Progress {
	at := b.at()
	return Progress{
		Target: b.target, Purpose: b.purpose, Phase: b.phase.Load().(string), Sequence: at,
		Head: max(at, b.head.Load()), PerSecond: perSecond, Elapsed: time.Since(b.begun),
	}
}

func (b *build) recordProgress(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, database.AnswerTimeout)
	defer cancel()
	p := b.progress(0)
	return query.New(conn).UpdateBuild(ctx, query.UpdateBuildParams{
		Target: p.Target, Phase: p.Phase, Sequence: int64(p.Sequence), Head: int64(p.Head),
	})
}

// withTarget runs fn on a connection that finds the tables of the target. The server ends the
// session soon after this process has ended. Commits do not wait for the disk: after a crash of the
// server, the next build drops the schema.
func (b *build) withTarget(
	ctx context.Context, fn func(ctx context.Context, conn *pgx.Conn) error,
) error {
	dial := b.cfg.ConnConfig.Copy()
	dial.RuntimeParams["search_path"] = b.target
	dial.RuntimeParams["synchronous_commit"] = "off"
	return database.WithConn(ctx, dial, func(conn *pgx.Conn) error {
		// Only newer versions of PostgreSQL can notice that a client has gone while they work.
		const prepare = "SET maintenance_work_mem = '128MB'; SELECT " +
			"set_config('client_connection_check_interval', '1s', false) " +
			"WHERE current_setting('client_connection_check_interval', true) IS NOT NULL"
		if _, err := conn.Exec(ctx, prepare); err != nil {
			return err
		}
		return fn(ctx, conn)
	})
}

// createTarget drops the target if it exists, and creates its empty tables, with their indexes if
// indexed is set.
func (b *build) createTarget(ctx context.Context, indexed bool) error {
	return b.withTarget(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		if err := schema.Drop(ctx, conn, b.target); err != nil {
			return err
		}
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			err := schema.CreateTables(ctx, tx, b.target)
			if err == nil && indexed {
				err = schema.CreateIndexes(ctx, tx)
			}
			return err
		})
	})
}

// startOver creates the target's tables with keys and indexes, for events that are applied one by
// one.
func (b *build) startOver(ctx context.Context) error {
	b.directoryAt.Reset()
	return b.createTarget(ctx, true)
}
