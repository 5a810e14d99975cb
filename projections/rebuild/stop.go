package rebuild

import (
	"context"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections/schema"
)

// Stop stops projections, in every schema and over restarts, until Resume. When Stop returns, no
// process writes to them any more. Status shows reason, which may be empty.
func (c *Control) Stop(ctx context.Context, names []string, reason string) error {
	return c.changeStops(ctx, func(queries *schema.Queries) error {
		for _, name := range names {
			if err := queries.PutStop(ctx, schema.PutStopParams{
				Projection: name, Why: schema.StorableText(reason),
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// Resume ends the stops of projections. A projection that is not stopped is left alone.
func (c *Control) Resume(ctx context.Context, names []string) error {
	return c.changeStops(ctx, func(queries *schema.Queries) error {
		for _, name := range names {
			if _, err := queries.RemoveStop(ctx, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// changeStops runs change in a transaction while no projector is within a batch: every later batch
// sees the change. All listeners are notified.
func (c *Control) changeStops(
	ctx context.Context, change func(queries *schema.Queries) error,
) error {
	return c.withConn(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			queries := schema.New(tx)
			schemas, err := queries.Schemas(ctx)
			if err != nil {
				return err
			}
			for _, other := range schemas {
				// A projector's batch begins with an update of this table, so none is under way.
				lock := "LOCK TABLE " + pgx.Identifier{other.Name, "checkpoints"}.Sanitize() +
					" IN EXCLUSIVE MODE"
				if _, err := tx.Exec(ctx, lock); err != nil {
					return err
				}
				if err := schema.NotifyListeners(ctx, tx, other.Name); err != nil {
					return err
				}
			}
			return change(queries)
		})
	})
}

// AwaitRunning waits, at most 15 s for each, until projections that were resumed have caught up,
// and returns their status.
func (c *Control) AwaitRunning(ctx context.Context, names []string) ([]schema.Status, error) {
	head := map[string]uint64{}
	all := make([]schema.Status, 0, len(names))
	for _, name := range names {
		now, err := c.await(ctx, name, func(p schema.Status) bool {
			if _, known := head[name]; !known {
				head[name] = p.Head
			}
			return p.State != schema.StateRunning || p.Sequence >= head[name]
		})
		if err != nil {
			return nil, err
		}
		all = append(all, now)
	}
	return all, nil
}
