package rebuild

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"golang.org/x/sync/errgroup"

	"hubcloud/projections/projector"
	"hubcloud/projections/schema"
)

const (
	// reportInterval is the time between two reports of a build. Each report runs a statement on
	// the connection that holds the lock, so the interval must be well below schema.SilenceLimit.
	reportInterval = 500 * time.Millisecond
	// cleanupTimeout bounds the cleanup after a build.
	cleanupTimeout = 20 * time.Second
)

// build is one build under way.
type build struct {
	cfg Config
	// report is called with the progress; nil for none.
	report func(Progress)
	// purpose is one of the Purpose constants; target is the schema that is built.
	purpose, target string
	begun           time.Time
	// conn holds the BuildLock. connMu must be locked by the goroutine that uses conn.
	connMu sync.Mutex
	conn   *pgx.Conn

	// phase is one of the Phase constants, a string.
	phase atomic.Value
	// copies are the projections of the target.
	copies []*building
}

// building is a projection of the target.
type building struct {
	projector.Projection
	// at is the checkpoint in the target's tables, begin the end of the stream when the build
	// began, and head its end as last read.
	at    schema.Position
	begin uint64
	head  atomic.Uint64
}

// directory is the projection of the directory, which is loaded in bulk.
func (b *build) directory() *building { return b.copies[0] }

// readHeads reads the ends of the streams. seen are sequences that the streams must have, by the
// name of their checkpoints; the caller must compare them with the heads.
func (b *build) readHeads(ctx context.Context, seen positions) error {
	for _, c := range b.copies {
		head, err := c.Head(ctx, seen.of(c))
		if err != nil {
			return err
		}
		c.head.Store(head)
	}
	return nil
}

// positions are the checkpoints of tables.
type positions map[string]schema.Checkpoint

func (p positions) of(c *building) uint64 { return uint64(p[c.Name()].Sequence) }

// readPositions reads the checkpoints of the tables that db finds.
func readPositions(ctx context.Context, db schema.DBTX) (positions, error) {
	rows, err := schema.New(db).Checkpoints(ctx)
	all := positions{}
	for _, row := range rows {
		all[row.Projection] = row
	}
	return all, err
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
	err := schema.WithConn(ctx, b.cfg.ConnConfig, func(conn *pgx.Conn) error {
		return errors.Join(b.recordProgress(ctx, conn), schema.Drop(ctx, conn, b.target))
	})
	if err != nil {
		b.cfg.Logger.Warn(
			"cleanup after a build failed; the next build cleans up", "schema", b.target,
			"error", err,
		)
	}
	if b.report != nil {
		b.report(b.progress())
	}
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
		p := b.progress()
		p.PerSecond = speed.measure(p.Sequence, time.Now())
		if b.report != nil {
			b.report(p)
		}
	}
}

func (b *build) progress() Progress {
	p := Progress{
		Target: b.target, Purpose: b.purpose, Phase: b.phase.Load().(string),
		Elapsed: time.Since(b.begun),
	}
	for _, c := range b.copies {
		at := c.at.At()
		switch schema.ProjectionOf(c.Name()) {
		case schema.Presence: // its bucket has the newest values only: it is no measure of the work
			continue
		case schema.Devices:
			p.Commits += at
		}
		p.Sequence, p.Head = p.Sequence+at, p.Head+max(at, c.head.Load())
	}
	return p
}

func (b *build) recordProgress(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, schema.AnswerTimeout)
	defer cancel()
	p := b.progress()
	return schema.New(conn).UpdateBuild(ctx, schema.UpdateBuildParams{
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
	return schema.WithConn(ctx, dial, func(conn *pgx.Conn) error {
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
			if err := schema.CreateTables(ctx, tx, b.target); err != nil {
				return err
			}
			// A switch may come before the copy of a journal without commits has begun.
			const add = "INSERT INTO checkpoints (projection) VALUES ($1) ON CONFLICT DO NOTHING"
			for _, c := range b.copies {
				if _, err := tx.Exec(ctx, add, c.Name()); err != nil {
					return err
				}
			}
			if !indexed {
				return nil
			}
			return schema.CreateIndexes(ctx, tx)
		})
	})
}

// startOver creates the target's tables with keys and indexes, for events that are applied one by
// one.
func (b *build) startOver(ctx context.Context) error {
	b.directory().at.Reset()
	return b.createTarget(ctx, true)
}

// reach brings projections of the target to sequences, each exactly if its stream has the entry, or
// for ever if seen is nil.
func (b *build) reach(ctx context.Context, seen positions, copies ...*building) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, c := range copies {
		how := projector.Copy{
			Skips: b.cfg.Directory.Skips, Until: seen.of(c), Reached: &c.at,
		}
		if seen != nil && how.Until == 0 {
			continue
		}
		group.Go(func() error {
			return b.withTarget(ctx, func(ctx context.Context, conn *pgx.Conn) error {
				return c.Copy(ctx, conn, how)
			})
		})
	}
	return group.Wait()
}
