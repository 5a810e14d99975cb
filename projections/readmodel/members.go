package readmodel

import (
	"context"

	"hubcloud/domain"
	"hubcloud/projections/schema"
)

// Members returns an organization's members, owners first, each group in the order of joining: at
// most limit (1 or more), after the member startingAfter unless that is empty. It fails with
// invalid_request if startingAfter is not, or is no longer, a member of the organization.
func (s *Store) Members(
	ctx context.Context, org string, limit int, startingAfter string,
) (domain.Page[domain.Member], error) {
	return s.FindMembers(ctx, org, "", limit, startingAfter)
}

// FindMembers is Members restricted to addresses that contain text, ignoring case. An empty text
// matches every address.
func (s *Store) FindMembers(
	ctx context.Context, org, text string, limit int, startingAfter string,
) (domain.Page[domain.Member], error) {
	return read(ctx, s, org, "members", func(ctx context.Context) (domain.Page[domain.Member], error) {
		params := schema.MembersParams{
			OrgID:    org,
			Text:     schema.StorableText(text),
			RowLimit: int32(limit) + 1,
		}
		if startingAfter != "" {
			position, err := s.queries.MemberPosition(ctx, schema.MemberPositionParams{
				OrgID: org, ID: schema.StorableText(startingAfter),
			})
			if err != nil {
				return domain.Page[domain.Member]{}, ifNoRow(err, unknownStart("member"))
			}
			params.BelowOwners, params.JoinedAfter = position.BelowOwners, position.JoinedSequence
		}
		rows, err := s.queries.Members(ctx, params)
		return pageOf(rows, limit, func(row schema.MembersRow) domain.Member {
			return memberOf(schema.MemberRow(row))
		}), err
	})
}

// Member returns a member of the organization, or not_found.
func (s *Store) Member(ctx context.Context, org, id string) (domain.Member, error) {
	return read(ctx, s, org, "member", func(ctx context.Context) (domain.Member, error) {
		row, err := s.queries.Member(
			ctx, schema.MemberParams{OrgID: org, ID: schema.StorableText(id)},
		)
		return memberOf(row), ifNoRow(err, domain.ErrMemberNotFound())
	})
}

func memberOf(row schema.MemberRow) domain.Member {
	return domain.Member{
		ID:       row.ID,
		Email:    row.Email,
		Role:     domain.Role(row.Role),
		JoinedAt: row.JoinedAt.UTC(),
	}
}
