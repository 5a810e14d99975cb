package projector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections/schema"
)

// retryBuild is the pause after a build, if another process may have built.
const retryBuild = 500 * time.Millisecond

// buildFirst calls Config.BuildFirst if the read models are empty and the directory is long. If an
// event cannot be applied, they stay empty: the projections then apply everything before that event
// and stop at it.
func (p *Projector) buildFirst(ctx context.Context) error {
	for p.cfg.BuildFirst != nil && ctx.Err() == nil {
		if needed, err := p.needsFirstBuild(ctx); err != nil || !needed {
			return err
		}
		err := p.cfg.BuildFirst(ctx)
		var stopped *schema.StoppedError
		switch {
		case errors.As(err, &stopped):
			p.cfg.Logger.Error("first build failed; applying the events one by one", "error", err)
			return nil
		case err != nil && ctx.Err() == nil:
			return fmt.Errorf("build the read models: %w", err)
		}
		schema.Pause(ctx, retryBuild) // another process may build them
	}
	return ctx.Err()
}

// needsFirstBuild reports whether the read models are empty and the directory is long.
func (p *Projector) needsFirstBuild(ctx context.Context) (bool, error) {
	head, err := p.cfg.Directory.Head(ctx, 0)
	if err != nil {
		return false, err
	}
	p.cfg.BuildTarget(head)
	if head < p.cfg.LoadFrom {
		return false, nil
	}
	var empty bool
	err = schema.WithConn(ctx, p.cfg.Database, func(conn *pgx.Conn) error {
		queries := schema.New(conn)
		at, err := queries.Checkpoint(ctx, schema.Directory)
		if err != nil || at.Sequence > 0 {
			return err
		}
		complete, err := schema.IsComplete(ctx, queries, p.cfg.Schema)
		empty = !complete
		return err
	})
	return empty, err
}
