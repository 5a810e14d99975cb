package rebuild

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections/schema"
)

// The purposes of a build.
const (
	// PurposeInstall replaces empty read models when a program with a new definition starts.
	PurposeInstall = "install"
	// PurposeRebuild replaces the read models in use.
	PurposeRebuild = "rebuild"
	// PurposeVerify is compared with the read models in use.
	PurposeVerify = "verify"
)

// The phases of a build.
const (
	// PhaseLoad reads the directory's events and writes rows.
	PhaseLoad = "load"
	// PhaseFollow applies what was stored since the load.
	PhaseFollow = "follow"
	// PhaseCompare compares with the read models in use.
	PhaseCompare = "compare"
	// PhaseHeld waits because an operator has stopped a projection.
	PhaseHeld = "held"
	// PhaseSwitch replaces the read models in use.
	PhaseSwitch = "switch"
	// PhaseDone and PhaseFailed are the end of a build.
	PhaseDone   = schema.PhaseDone
	PhaseFailed = schema.PhaseFailed
)

var (
	// ErrBusy means that another process builds beside the same schema.
	ErrBusy = errors.New("another process builds read models")
	// ErrFailed means that the build of another process, which Rebuild waited for, has failed.
	ErrFailed = errors.New("the other process could not build the read models")
)

// Install builds read models, replaces those in use, which must be empty, and drops these. Last
// reported states stay empty: the projector builds them then. It
// returns nil also if another process builds, and fails with a *schema.StoppedError if an event
// cannot be applied.
func (c *Control) Install(ctx context.Context) error {
	report := func(p Progress) {
		c.cfg.Logger.Info(
			"building the read models", "phase", p.Phase, "sequence", p.Sequence, "head", p.Head,
			"events_per_second", int(p.PerSecond),
		)
	}
	var replaced string
	err := c.withBuild(
		ctx, PurposeInstall, report, func(ctx context.Context, build *build) (err error) {
			replaced, err = build.replace(ctx)
			return err
		},
	)
	if errors.Is(err, ErrBusy) {
		return nil
	}
	if err != nil {
		return err
	}
	err = c.withConn(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return schema.Drop(ctx, conn, replaced)
	})
	if err != nil {
		c.cfg.Logger.Warn(
			"empty tables not dropped; `hubcloud projections drop` drops them", "schema", replaced,
			"error", err,
		)
	}
	return nil
}

// Rebuild builds read models and replaces those in use, which are kept until they are dropped. It
// calls report with the progress twice a second and at the end, one call at a time; report may be
// nil.
// While another process builds, Rebuild waits for it, and is done if that was a rebuild too; then
// it fails with ErrFailed if the other build failed. It fails with a *projections.StoppedError if
// an event cannot be applied.
func (c *Control) Rebuild(ctx context.Context, report func(Progress)) error {
	for {
		err := c.withBuild(ctx, PurposeRebuild, report, func(ctx context.Context, build *build) error {
			_, err := build.replace(ctx)
			return err
		})
		if !errors.Is(err, ErrBusy) {
			return wrap(err)
		}
		rebuilt, err := c.followOther(ctx, report)
		if err != nil || rebuilt {
			return wrap(err)
		}
	}
}

// Verify builds read models and compares those in use with them, both as of the same event: exactly
// what the projector had committed at one moment, while reads and writes go on. It calls found with
// each difference, one call at a time, and report with the progress as Rebuild does. The new read
// models are dropped afterwards. While another process builds, Verify waits for it first.
//
// Last reported states of hubs that were released or reset, which no organization can see, are left
// out: they are deleted some time later.
//
// The presence bucket has only the newest value of each hub. Hubs whose presence is newer than the
// moment of the comparison are compared again until their presence no longer changes.
func (c *Control) Verify(
	ctx context.Context, report func(Progress),
	found func(projection string, d Difference) error,
) (all []Verified, err error) {
	for {
		err := c.withBuild(
			ctx, PurposeVerify, report, func(ctx context.Context, build *build) (err error) {
				all, err = (&verification{build: build, found: found}).run(ctx)
				return err
			},
		)
		if !errors.Is(err, ErrBusy) {
			return all, wrap(err)
		}
		if _, err := c.followOther(ctx, report); err != nil && !errors.Is(err, ErrFailed) {
			return nil, wrap(err)
		}
	}
}

func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("build read models: %w", err)
}

// withBuild runs fn with a new build, which holds the BuildLock. It fails with ErrBusy if another
// process holds the lock. Schemas that earlier builds have left are dropped first. fn's context
// ends when the lock may be lost.
func (c *Control) withBuild(
	ctx context.Context, purpose string, report func(Progress),
	fn func(ctx context.Context, build *build) error,
) error {
	return c.withConn(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		if err := schema.EndWhenSilent(ctx, conn); err != nil {
			return err
		}
		taken, err := schema.BuildLock(c.cfg.Schema).Try(ctx, conn)
		if err != nil {
			return err
		}
		if !taken {
			return ErrBusy
		}
		if err := schema.DropUnfinished(ctx, conn, c.cfg.Schema); err != nil {
			return err
		}
		target := schema.NextName(c.cfg.Schema)
		if purpose == PurposeVerify {
			target = schema.VerifyName(c.cfg.Schema)
		}
		err = schema.New(conn).BeginBuild(ctx, schema.BeginBuildParams{
			Target: target, Schema: c.cfg.Schema, Purpose: purpose,
		})
		if err != nil {
			return err
		}
		build := &build{
			cfg: c.cfg, report: report, purpose: purpose, target: target, begun: time.Now(),
			conn: conn,
		}
		for _, projection := range c.cfg.Copies(c.cfg.Logger) {
			if purpose != PurposeInstall || schema.Awaited(projection.Name()) {
				build.copies = append(build.copies, &building{Projection: projection})
			}
		}
		return build.run(ctx, fn)
	})
}
