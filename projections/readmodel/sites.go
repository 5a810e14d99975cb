package readmodel

import (
	"context"

	"hubcloud/domain"
	"hubcloud/projections/schema"
)

// Sites returns the sites within a reach in the order of their creation: at most limit (1 or more),
// after the site startingAfter unless that is empty. It fails with invalid_request if startingAfter
// is none of them.
func (s *Store) Sites(
	ctx context.Context, reach domain.Reach, limit int, startingAfter string,
) (domain.Page[domain.Site], error) {
	org := reach.OrgID
	return read(ctx, s, org, "sites", func(ctx context.Context) (domain.Page[domain.Site], error) {
		params := schema.SitesParams{OrgID: org, Within: reach.Sites, RowLimit: int32(limit) + 1}
		if startingAfter != "" {
			after, err := s.queries.SiteSequence(ctx, schema.SiteSequenceParams{
				OrgID: org, ID: schema.StorableText(startingAfter), Within: reach.Sites,
			})
			if err != nil {
				return domain.Page[domain.Site]{}, ifNoRow(err, unknownStart("site"))
			}
			params.After = after
		}
		rows, err := s.queries.Sites(ctx, params)
		return pageOf(rows, limit, func(row schema.SitesRow) domain.Site {
			return siteOf(schema.SiteRow(row))
		}), err
	})
}

// Site returns a site of the organization, or not_found.
func (s *Store) Site(ctx context.Context, org, id string) (domain.Site, error) {
	return read(ctx, s, org, "site", func(ctx context.Context) (domain.Site, error) {
		row, err := s.queries.Site(ctx, schema.SiteParams{OrgID: org, ID: schema.StorableText(id)})
		return siteOf(row), ifNoRow(err, domain.ErrSiteNotFound())
	})
}

func siteOf(row schema.SiteRow) domain.Site {
	return domain.Site{
		ID:        row.ID,
		Name:      row.Name,
		HubCount:  int(row.HubCount),
		CreatedAt: row.CreatedAt.UTC(),
	}
}
