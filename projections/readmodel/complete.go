package readmodel

import (
	"context"

	"hubcloud/projections/schema"
)

// answerable returns nil if the read models can answer: before their first build is complete, lists
// would lack items. Otherwise it returns errGone while the database was never reached, and
// schema.ErrBuilding after that.
func (s *Store) answerable() error {
	switch {
	case !isClosed(s.claimed):
		return errGone
	case !isClosed(s.complete), s.incomplete.Load():
		return schema.ErrBuilding
	}
	return nil
}

// readOf is read of a projection that is built after the others: it fails with service_unavailable
// until its own first build is complete.
func readOf[T any](
	ctx context.Context, s *Store, projection, org, what string,
	ask func(ctx context.Context) (T, error),
) (T, error) {
	return read(ctx, s, org, what, func(ctx context.Context) (answer T, err error) {
		built, err := s.queries.IsBuilt(ctx, projection)
		if err != nil {
			return answer, err
		}
		if !built {
			return answer, schema.ErrBuilding
		}
		return ask(ctx)
	})
}

// Complete returns a channel that is closed once the first build of the read models is complete.
// Until then queries fail with schema.ErrBuilding, or with another error while the database was
// never reached.
func (s *Store) Complete() <-chan struct{} { return s.complete }

// checkComplete reads whether the first build of the read models is complete.
func (s *Store) checkComplete(ctx context.Context, queries *schema.Queries) error {
	complete, err := schema.IsComplete(ctx, queries, s.schema)
	if err != nil {
		return err
	}
	s.incomplete.Store(!complete)
	if complete {
		s.completeOnce.Do(func() { close(s.complete) })
	}
	return nil
}
