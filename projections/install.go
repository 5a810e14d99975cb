package projections

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go/jetstream"
)

// loadFrom is how many events are worth building read models at once, beside the empty tables,
// rather than in them one by one.
const loadFrom = 10_000

// install makes read models that nobody has begun to make, if there is much to make them from. An
// event that cannot be applied leaves them empty: applied one by one, everything before it is
// committed, and it is seen which.
func (s *Store) install(ctx context.Context, dir Directory, presence jetstream.KeyValue) error {
	for ctx.Err() == nil {
		head, err := dir.Head(ctx, 0)
		if err != nil {
			return err
		}
		s.target.Store(head)
		if !errors.Is(s.Ready(ctx), ErrBuilding) {
			return nil
		}
		begun, err := s.control.Checkpoint(ctx, DirectoryProjection)
		if err != nil {
			return err
		}
		if begun.Sequence > 0 || head < s.loadFrom {
			return nil
		}
		from := &builder{
			schema: s.schema, dial: s.dial, dir: dir, presence: presence, log: s.log,
			purpose: PurposeInstall, rows: loadRows,
			report: func(p BuildProgress) {
				s.metrics.sequence.WithLabelValues(DirectoryProjection).Set(float64(p.Sequence))
				s.log.Info(
					"building the read models", "phase", p.Phase, "sequence", p.Sequence,
					"head", p.Head, "events_per_second", int(p.PerSecond),
				)
			},
		}
		var empty string
		err = from.hold(ctx, func(ctx context.Context, b *build) error {
			err := b.makeAnew(ctx)
			empty = b.old
			return err
		})
		var stopped *StoppedError
		switch {
		case err == nil:
			s.dropEmpty(ctx, empty)
			return nil
		case errors.As(err, &stopped):
			s.log.Error(
				"the read models cannot be built at once; building them event by event", "error",
				err,
			)
			return nil
		case errors.Is(err, errBusy): // an operator who rebuilds them
			pause(ctx, standByEvery)
		case ctx.Err() == nil:
			return fmt.Errorf("build the read models: %w", err)
		}
	}
	return ctx.Err()
}

// dropEmpty drops the tables that the first read models have taken the place of: nobody keeps them.
func (s *Store) dropEmpty(ctx context.Context, schema string) {
	if err := s.with(ctx, func(conn *pgx.Conn) error { return forgetSchema(ctx, conn, schema) }); err != nil {
		s.log.Warn(
			"could not drop the empty tables that were there before; `hubcloud projections drop` does",
			"schema", schema, "error", err,
		)
	}
}
