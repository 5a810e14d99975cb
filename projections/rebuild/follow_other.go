package rebuild

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections/schema"
)

// followPause is the time between two reads of another process's progress.
const followPause = 500 * time.Millisecond

// Building returns the progress of the build under way, in any process; false if there is none.
func (c *Control) Building(ctx context.Context) (now Progress, ok bool, err error) {
	row, busy, err := c.lastBuild(ctx)
	if errors.Is(err, pgx.ErrNoRows) {
		return now, false, nil
	}
	return otherProgress(row), err == nil && busy && schema.BuildUnderWay(row), err
}

// lastBuild returns the record of the last build beside the schema, and whether a process holds the
// BuildLock. It fails with pgx.ErrNoRows if there is no record; busy is set even then.
func (c *Control) lastBuild(ctx context.Context) (row schema.BuildRow, busy bool, err error) {
	err = c.withConn(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		if busy, err = schema.BuildLock(c.cfg.Schema).IsHeld(ctx, conn); err != nil {
			return err
		}
		row, err = schema.New(conn).Build(ctx, c.cfg.Schema)
		return err
	})
	return row, busy, err
}

func otherProgress(row schema.BuildRow) Progress {
	return Progress{
		Target: row.Target, Purpose: row.Purpose, Phase: row.Phase,
		Sequence: uint64(row.Sequence), Head: uint64(row.Head),
		Elapsed: time.Since(row.StartedAt), Followed: true,
	}
}

// followOther waits for the build of another process, and reports its progress. rebuilt means that
// the other build has replaced the read models; otherwise it had another purpose or was cut off. It
// fails with ErrFailed if the other build was to replace them and failed.
func (c *Control) followOther(
	ctx context.Context, report func(Progress),
) (rebuilt bool, err error) {
	target := ""
	var speed speedometer
	for ; ctx.Err() == nil; schema.Pause(ctx, followPause) {
		row, busy, err := c.lastBuild(ctx)
		missing := errors.Is(err, pgx.ErrNoRows)
		if err != nil && !missing {
			return false, err
		}
		ended := !busy || !schema.BuildUnderWay(row)
		if target == "" {
			switch {
			case !missing && !ended:
				target = row.Target
			case busy: // the other build is not recorded yet
				continue
			default: // the other build has ended
				return false, nil
			}
		}
		replaces := row.Purpose != PurposeVerify
		switch {
		case missing, row.Target != target: // yet another process has begun a build
			return false, nil
		case ended && row.Phase == PhaseFailed && replaces:
			return false, ErrFailed
		case ended:
			return row.Phase == PhaseDone && replaces, nil
		}
		progress := otherProgress(row)
		progress.PerSecond = speed.measure(progress.Sequence, time.Now())
		if report != nil {
			report(progress)
		}
	}
	return false, ctx.Err()
}
