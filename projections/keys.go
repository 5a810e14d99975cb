package projections

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
	"hubcloud/projections/internal/query"
)

// afterAllKeys is later than any key is made.
var afterAllKeys = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// keys is Keys, asked once.
func (s *Store) keys(
	ctx context.Context, org string, limit int, startingAfter string,
) (domain.Page[domain.KeyView], error) {
	none := domain.Page[domain.KeyView]{}
	params := query.KeysOfOrgParams{
		OrgID:         storable(org),
		RowLimit:      int32(limit) + 1,
		CreatedBefore: afterAllKeys,
	}
	if startingAfter != "" {
		last, err := s.key(ctx, org, startingAfter)
		if errors.Is(err, &domain.Error{Code: domain.CodeNotFound}) {
			return none, unknownStart("API key")
		}
		if err != nil {
			return none, err
		}
		params.Revoked, params.CreatedBefore, params.After = !last.RevokedAt.IsZero(), last.CreatedAt, last.ID
	}
	rows, err := s.queries.KeysOfOrg(ctx, params)
	if err != nil {
		return none, fmt.Errorf("read models: keys: %w", err)
	}
	return pageOf(
		rows, limit,
		func(row query.KeysOfOrgRow) domain.KeyView { return keyOf(query.KeyRow(row)) },
	), nil
}

// key is Key, asked once.
func (s *Store) key(ctx context.Context, org, id string) (domain.KeyView, error) {
	row, err := s.queries.Key(ctx, query.KeyParams{OrgID: storable(org), ID: storable(id)})
	if errors.Is(err, pgx.ErrNoRows) {
		return domain.KeyView{}, domain.ErrKeyNotFound()
	}
	if err != nil {
		return domain.KeyView{}, fmt.Errorf("read models: key: %w", err)
	}
	return keyOf(row), nil
}

func keyOf(row query.KeyRow) domain.KeyView {
	key := domain.KeyView{
		ID: row.ID, Label: row.Label, Environment: row.Environment, CreatedAt: row.CreatedAt.UTC(),
		Scopes: column(row.Scopes, func(s string) domain.Scope { return domain.Scope(s) }),
	}
	if row.RevokedAt != nil {
		key.RevokedAt = row.RevokedAt.In(time.UTC)
	}
	return key
}
