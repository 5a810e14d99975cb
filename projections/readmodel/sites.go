package readmodel

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
	"hubcloud/projections/database"
	"hubcloud/projections/internal/query"
)

// Sites returns an organization's sites in the order of their creation: at most limit (1 or more),
// after the site startingAfter unless that is empty. It fails with invalid_request if startingAfter
// is no site of the organization.
func (s *Store) Sites(
	ctx context.Context, org string, limit int, startingAfter string,
) (domain.Page[domain.Site], error) {
	return read(ctx, s, func(ctx context.Context) (domain.Page[domain.Site], error) {
		return s.sites(ctx, org, limit, startingAfter)
	})
}

func (s *Store) sites(
	ctx context.Context, org string, limit int, startingAfter string,
) (domain.Page[domain.Site], error) {
	params := query.SitesParams{OrgID: org, RowLimit: int32(limit) + 1}
	if startingAfter != "" {
		after, err := s.queries.SiteSequence(
			ctx, query.SiteSequenceParams{OrgID: org, ID: database.StorableText(startingAfter)},
		)
		if errors.Is(err, pgx.ErrNoRows) {
			return domain.Page[domain.Site]{}, unknownStart("site")
		}
		if err != nil {
			return domain.Page[domain.Site]{}, fmt.Errorf("read models: sites: %w", err)
		}
		params.After = after
	}
	page := newPage[domain.Site](limit)
	err := s.queries.EachSite(ctx, params, func(row *query.SitesRow) {
		page.add(siteOf(query.SiteRow(*row)))
	})
	if err != nil {
		return domain.Page[domain.Site]{}, fmt.Errorf("read models: sites: %w", err)
	}
	return page.Page, nil
}

// Site returns a site of the organization, or not_found.
func (s *Store) Site(ctx context.Context, org, id string) (domain.Site, error) {
	return read(ctx, s, func(ctx context.Context) (domain.Site, error) {
		return s.site(ctx, org, id)
	})
}

func (s *Store) site(ctx context.Context, org, id string) (domain.Site, error) {
	row, err := s.queries.Site(ctx, query.SiteParams{OrgID: org, ID: database.StorableText(id)})
	if errors.Is(err, pgx.ErrNoRows) {
		return domain.Site{}, domain.ErrSiteNotFound()
	}
	if err != nil {
		return domain.Site{}, fmt.Errorf("read models: site: %w", err)
	}
	return siteOf(row), nil
}

func siteOf(row query.SiteRow) domain.Site {
	return domain.Site{
		ID:        row.ID,
		Name:      row.Name,
		HubCount:  int(row.HubCount),
		CreatedAt: row.CreatedAt.UTC(),
	}
}
