package projections

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
	"hubcloud/projections/internal/query"
)

// Members gives an organization's members, owners first, each in the order in which they joined: at
// most limit of them (1 or more), after the member startingAfter when that is not empty. A
// startingAfter that is no member of the organization (any more) is an invalid_request.
func (s *Store) Members(
	ctx context.Context, org string, limit int, startingAfter string,
) (domain.Page[domain.Member], error) {
	return s.FindMembers(ctx, org, "", limit, startingAfter)
}

// findMembers is FindMembers, asked once.
func (s *Store) findMembers(
	ctx context.Context, org, text string, limit int, startingAfter string,
) (domain.Page[domain.Member], error) {
	none := domain.Page[domain.Member]{}
	params := query.MembersParams{OrgID: org, Text: storable(text), RowLimit: int32(limit) + 1}
	if startingAfter != "" {
		place, err := s.queries.MemberPlace(
			ctx, query.MemberPlaceParams{OrgID: org, ID: storable(startingAfter)},
		)
		if errors.Is(err, pgx.ErrNoRows) {
			return none, unknownStart("member")
		}
		if err != nil {
			return none, fmt.Errorf("read models: members: %w", err)
		}
		params.BelowOwners, params.JoinedAfter = place.BelowOwners, place.JoinedSequence
	}
	rows, err := s.queries.Members(ctx, params)
	if err != nil {
		return none, fmt.Errorf("read models: members: %w", err)
	}
	return pageOf(
		rows, limit,
		func(row query.MembersRow) domain.Member { return memberOf(query.MemberRow(row)) },
	), nil
}

// member is Member, asked once.
func (s *Store) member(ctx context.Context, org, id string) (domain.Member, error) {
	row, err := s.queries.Member(ctx, query.MemberParams{OrgID: org, ID: storable(id)})
	if errors.Is(err, pgx.ErrNoRows) {
		return domain.Member{}, domain.ErrMemberNotFound()
	}
	if err != nil {
		return domain.Member{}, fmt.Errorf("read models: member: %w", err)
	}
	return memberOf(row), nil
}

func memberOf(row query.MemberRow) domain.Member {
	return domain.Member{
		ID:       row.ID,
		Email:    row.Email,
		Role:     domain.Role(row.Role),
		JoinedAt: row.JoinedAt.UTC(),
	}
}

// invitations is Invitations, asked once.
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
			ctx, query.InvitationSequenceParams{OrgID: org, ID: storable(startingAfter)},
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
