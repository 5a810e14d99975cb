package projections

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections/internal/query"
)

// ErrBuildFailed says that another process's build, which was waited for, has failed.
var ErrBuildFailed = errors.New("the other process could not build the read models")

// followEvery is how often who waits for another process's build looks how it does.
const followEvery = 500 * time.Millisecond

// builder makes a builder for a purpose.
func (c *Control) builder(purpose string, report func(BuildProgress)) *builder {
	return &builder{
		schema: c.schema, dial: c.dial, dir: c.cfg.Directory, presence: c.cfg.Presence, log: c.log,
		purpose: purpose, rows: c.rows, report: report,
	}
}

// Rebuild builds the read models anew from the streams, beside those in use, and has them take
// their place once they have caught up. Reads and writes go on meanwhile; the old ones are kept
// until Drop. Interrupted at any instant, it leaves those in use as they are, and the next one
// cleans up. While another process builds, it follows that one instead, and is done when that one
// is. report hears how it does; nil when nobody does. It fails with a *StoppedError when an event
// cannot be applied, and with ErrBuildFailed when the process that it followed failed.
func (c *Control) Rebuild(ctx context.Context, report func(BuildProgress)) (err error) {
	for {
		err := c.builder(PurposeRebuild, report).
			hold(ctx, func(ctx context.Context, b *build) error { return b.makeAnew(ctx) })
		if !errors.Is(err, errBusy) {
			return wrapBuild(err)
		}
		done, err := c.followOther(ctx, report)
		if err != nil {
			return wrapBuild(err)
		}
		if done {
			return nil
		}
	}
}

// Building gives how the build does that is under way, and false when there is none.
func (c *Control) Building(ctx context.Context) (now BuildProgress, ok bool, err error) {
	err = c.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		held, err := isLocked(ctx, conn, lockBuilds, lockOf(c.schema))
		if err != nil || !held {
			return err
		}
		row, err := query.New(conn).Build(ctx, c.schema)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		now = BuildProgress{
			Target: row.Target, Purpose: row.Purpose, Phase: row.Phase,
			Sequence: uint64(row.Sequence), Head: uint64(row.Head),
			Elapsed: time.Since(row.StartedAt), Followed: true,
		}
		ok = err == nil && row.Phase != PhaseDone && row.Phase != PhaseFailed
		return err
	})
	return now, ok, err
}

func wrapBuild(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("build read models: %w", err)
}

// followOther waits for the build of another process. done says that it has made read models anew;
// it can also have been another kind of build, or been cut off.
func (c *Control) followOther(
	ctx context.Context, report func(BuildProgress),
) (done bool, err error) {
	var target string
	var rate speed
	for {
		var row query.BuildRow
		var busy bool
		err := c.with(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
			if busy, err = isLocked(ctx, conn, lockBuilds, lockOf(c.schema)); err != nil {
				return err
			}
			row, err = query.New(conn).Build(ctx, c.schema)
			return err
		})
		switch {
		case errors.Is(err, pgx.ErrNoRows): // it has only just begun, or it never got so far
			if !busy {
				return false, nil
			}
			pause(ctx, followEvery)
			continue
		case err != nil:
			return false, err
		}
		ended := !busy || row.Phase == PhaseDone || row.Phase == PhaseFailed
		switch {
		case target == "" && ended && busy: // that is the last one, and the next has only just begun
			pause(ctx, followEvery)
			continue
		case target == "" && ended:
			return false, nil
		case target == "":
			target = row.Target
		}
		switch {
		case row.Target != target: // somebody else was faster to begin the next
			return false, nil
		case ended && row.Phase == PhaseFailed && row.Purpose != PurposeVerify:
			return false, ErrBuildFailed
		case ended:
			return row.Phase == PhaseDone && row.Purpose != PurposeVerify, nil
		}
		if report != nil {
			at := uint64(row.Sequence)
			report(BuildProgress{
				Target: row.Target, Purpose: row.Purpose, Phase: row.Phase, Sequence: at,
				Head: uint64(row.Head),
				PerSecond: rate.of(
					at, time.Now(),
				), Elapsed: time.Since(row.StartedAt), Followed: true,
			})
		}
		if pause(ctx, followEvery); ctx.Err() != nil {
			return false, ctx.Err()
		}
	}
}
