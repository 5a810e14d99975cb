package readmodel

import (
	"context"
	"encoding/json"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/schema"
)

// afterAllKeys is later than the creation of any key.
var afterAllKeys = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// Keys returns an organization's API keys, those in force first, each group newest first: at most
// limit (1 or more), after the key startingAfter unless that is empty. It fails with
// invalid_request if startingAfter is no key of the organization.
func (s *Store) Keys(
	ctx context.Context, org string, limit int, startingAfter string,
) (domain.Page[domain.KeyView], error) {
	return read(ctx, s, org, "keys", func(ctx context.Context) (domain.Page[domain.KeyView], error) {
		params := schema.KeysOfOrgParams{
			OrgID:         schema.StorableText(org),
			RowLimit:      int32(limit) + 1,
			CreatedBefore: afterAllKeys,
		}
		if startingAfter != "" {
			last, err := s.key(ctx, org, startingAfter)
			if err != nil {
				return domain.Page[domain.KeyView]{}, ifNoRow(err, unknownStart("API key"))
			}
			params.Revoked = !last.RevokedAt.IsZero()
			params.CreatedBefore, params.After = last.CreatedAt, last.ID
		}
		rows, err := s.queries.KeysOfOrg(ctx, params)
		return pageOf(rows, limit, func(row schema.KeysOfOrgRow) domain.KeyView {
			return keyOf(schema.KeyRow(row))
		}), err
	})
}

// Key returns an API key of the organization, revoked or not, or not_found.
func (s *Store) Key(ctx context.Context, org, id string) (domain.KeyView, error) {
	return read(ctx, s, org, "key", func(ctx context.Context) (domain.KeyView, error) {
		key, err := s.key(ctx, org, id)
		return key, ifNoRow(err, domain.ErrKeyNotFound())
	})
}

// key returns an API key of the organization. It fails with pgx.ErrNoRows if there is none.
func (s *Store) key(ctx context.Context, org, id string) (domain.KeyView, error) {
	row, err := s.queries.Key(
		ctx, schema.KeyParams{OrgID: schema.StorableText(org), ID: schema.StorableText(id)},
	)
	return keyOf(row), err
}

func keyOf(row schema.KeyRow) domain.KeyView {
	key := domain.KeyView{
		ID: row.ID, Label: row.Label, Environment: row.Environment, CreatedAt: row.CreatedAt.UTC(),
		Scopes: make([]domain.Scope, 0, len(row.Scopes)),
	}
	for _, scope := range row.Scopes {
		key.Scopes = append(key.Scopes, domain.Scope(scope))
	}
	if row.RevokedAt != nil {
		key.RevokedAt = row.RevokedAt.In(time.UTC)
	}
	key.KeyLimits = LimitsOf(row.Sites, row.ExpiresAt)
	for _, former := range FormerSecrets(row.FormerSecrets) {
		key.FormerUntil = latest(key.FormerUntil, former.Until)
	}
	return key
}

// LimitsOf returns the limits of a key from its columns.
func LimitsOf(sites []string, expires *time.Time) (limits domain.KeyLimits) {
	if len(sites) > 0 {
		limits.Sites = sites
	}
	if expires != nil {
		limits.ExpiresAt = expires.UTC()
	}
	return limits
}

// FormerSecrets returns the secrets in the column former_secrets, none for a text that is not
// readable.
func FormerSecrets(text *string) (former []domain.KeySecret) {
	if text != nil && json.Unmarshal([]byte(*text), &former) != nil {
		return nil
	}
	return former
}
