package readmodel

import (
	"context"
	"math"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/schema"
)

// Invitations returns the invitations of an organization that are pending at now, newest first: at
// most limit (1 or more), after the invitation startingAfter unless that is empty. It fails with
// invalid_request if startingAfter is no invitation of the organization; one that is no longer
// pending is a valid start.
func (s *Store) Invitations(
	ctx context.Context, org string, limit int, startingAfter string, now time.Time,
) (domain.Page[domain.Invitation], error) {
	return read(ctx, s, org, "invitations", func(
		ctx context.Context,
	) (domain.Page[domain.Invitation], error) {
		params := schema.PendingInvitationsParams{
			OrgID:    org,
			At:       now,
			Before:   math.MaxInt64,
			RowLimit: int32(limit) + 1,
		}
		if startingAfter != "" {
			before, err := s.queries.InvitationSequence(ctx, schema.InvitationSequenceParams{
				OrgID: org, ID: schema.StorableText(startingAfter),
			})
			if err != nil {
				return domain.Page[domain.Invitation]{}, ifNoRow(err, unknownStart("invitation"))
			}
			params.Before = before
		}
		rows, err := s.queries.PendingInvitations(ctx, params)
		return pageOf(rows, limit, pendingInvitation), err
	})
}

func pendingInvitation(row schema.PendingInvitationsRow) domain.Invitation {
	return domain.Invitation{
		ID: row.ID, Email: row.Email, Role: domain.Role(row.Role),
		Status:    domain.InvitationPending,
		CreatedAt: row.CreatedAt.UTC(), ExpiresAt: row.ExpiresAt.UTC(),
	}
}
