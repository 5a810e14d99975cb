package readmodel

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
	"hubcloud/projections/database"
	"hubcloud/projections/internal/query"
)

// Invitations returns the invitations of an organization that are pending at now, newest first: at
// most limit (1 or more), after the invitation startingAfter unless that is empty. It fails with
// invalid_request if startingAfter is no invitation of the organization; one that is no longer
// pending is a valid start.
func (s *Store) Invitations(
	ctx context.Context, org string, limit int, startingAfter string, now time.Time,
) (domain.Page[domain.Invitation], error) {
	return read(ctx, s, func(ctx context.Context) (domain.Page[domain.Invitation], error) {
		return s.invitations(ctx, org, limit, startingAfter, now)
	})
}

func (s *Store) invitations(
	ctx context.Context, org string, limit int, startingAfter string, now time.Time,
) (domain.Page[domain.Invitation], error) {
	none := domain.Page[domain.Invitation]{}
	params := query.PendingInvitationsParams{
		OrgID:    org,
		At:       now,
		Before:   math.MaxInt64,
		RowLimit: int32(limit) + 1,
	}
	if startingAfter != "" {
		before, err := s.queries.InvitationSequence(
			ctx,
			query.InvitationSequenceParams{OrgID: org, ID: database.StorableText(startingAfter)},
		)
		if errors.Is(err, pgx.ErrNoRows) {
			return none, unknownStart("invitation")
		}
		if err != nil {
			return none, fmt.Errorf("read models: invitations: %w", err)
		}
		params.Before = before
	}
	rows, err := s.queries.PendingInvitations(ctx, params)
	if err != nil {
		return none, fmt.Errorf("read models: invitations: %w", err)
	}
	return pageOf(rows, limit, func(row query.PendingInvitationsRow) domain.Invitation {
		return domain.Invitation{
			ID: row.ID, Email: row.Email, Role: domain.Role(row.Role),
			Status:    domain.InvitationPending,
			CreatedAt: row.CreatedAt.UTC(), ExpiresAt: row.ExpiresAt.UTC(),
		}
	}), nil
}
