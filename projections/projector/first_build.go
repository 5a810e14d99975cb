package projector

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections"
	"hubcloud/projections/database"
	"hubcloud/projections/internal/query"
	"hubcloud/projections/rebuild"
	"hubcloud/projections/schema"
)

// buildFirst builds the read models with package rebuild if they are empty and the directory is
// long. If an event cannot be applied, they stay empty: the projections then apply everything
// before that event and stop at it.
func (p *Projector) buildFirst(ctx context.Context) error {
	builder, err := rebuild.New(rebuild.Config{
		Schema: p.schema, ConnConfig: p.cfg.Store.ConnConfig(), Directory: p.cfg.Directory,
		Presence: p.cfg.Presence, Logger: p.cfg.Logger, Report: p.reportFirstBuild,
	})
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		if needed, err := p.needsFirstBuild(ctx); err != nil || !needed {
			return err
		}
		replaced, err := builder.Install(ctx)
		var stopped *projections.StoppedError
		switch {
		case err == nil:
			p.dropReplaced(ctx, replaced)
			return nil
		case errors.As(err, &stopped):
			p.cfg.Logger.Error("first build failed; applying the events one by one", "error", err)
			return nil
		case errors.Is(err, rebuild.ErrBusy): // an operator rebuilds the read models
			database.Pause(ctx, standByPause)
		case ctx.Err() == nil:
			return fmt.Errorf("build the read models: %w", err)
		}
	}
	return ctx.Err()
}

// needsFirstBuild reports whether the read models are empty and the directory is long.
func (p *Projector) needsFirstBuild(ctx context.Context) (bool, error) {
	head, err := p.cfg.Directory.Head(ctx, 0)
	if err != nil {
		return false, err
	}
	p.cfg.Store.SetBuildTarget(head)
	if head < p.cfg.LoadFrom || !errors.Is(p.cfg.Store.Ready(ctx), projections.ErrBuilding) {
		return false, nil
	}
	var at query.CheckpointRow
	err = p.withConn(ctx, func(conn *pgx.Conn) (err error) {
		at, err = query.New(conn).Checkpoint(ctx, projections.Directory)
		return err
	})
	return at.Sequence == 0, err
}

func (p *Projector) reportFirstBuild(progress rebuild.Progress) {
	p.metrics.sequence.WithLabelValues(projections.Directory).Set(float64(progress.Sequence))
	p.cfg.Logger.Info(
		"building the read models", "phase", progress.Phase, "sequence", progress.Sequence,
		"head", progress.Head, "events_per_second", int(progress.PerSecond),
	)
}

// dropReplaced drops the empty tables that the first build has replaced.
func (p *Projector) dropReplaced(ctx context.Context, name string) {
	err := p.withConn(ctx, func(conn *pgx.Conn) error { return schema.Drop(ctx, conn, name) })
	if err != nil {
		p.cfg.Logger.Warn(
			"empty tables not dropped; `hubcloud projections drop` drops them", "schema", name,
			"error", err,
		)
	}
}
