package projections

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
	"hubcloud/projections/internal/query"
)

// sites is Sites, asked once.
func (s *Store) sites(
	ctx context.Context, org string, limit int, startingAfter string,
) (domain.Page[domain.Site], error) {
	params := query.SitesParams{OrgID: org, RowLimit: int32(limit) + 1}
	if startingAfter != "" {
		after, err := s.queries.SiteSequence(
			ctx, query.SiteSequenceParams{OrgID: org, ID: storable(startingAfter)},
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
	if err := s.queries.EachSite(ctx, params, func(row *query.SitesRow) { page.add(siteOf(query.SiteRow(*row))) }); err != nil {
		return domain.Page[domain.Site]{}, fmt.Errorf("read models: sites: %w", err)
	}
	return page.Page, nil
}

// site is Site, asked once.
func (s *Store) site(ctx context.Context, org, id string) (domain.Site, error) {
	row, err := s.queries.Site(ctx, query.SiteParams{OrgID: org, ID: storable(id)})
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

// page is a page in the making, of items that come one by one, one more than the limit at most.
type page[V any] struct {
	domain.Page[V]
	limit int
}

func newPage[V any](limit int) *page[V] {
	return &page[V]{domain.Page[V]{Data: make([]V, 0, limit)}, limit}
}

func (p *page[V]) add(item V) {
	if p.HasMore = len(p.Data) == p.limit; !p.HasMore {
		p.Data = append(p.Data, item)
	}
}

// pageOf makes a page of rows that were asked for with one more than the limit.
func pageOf[R, V any](rows []R, limit int, view func(R) V) domain.Page[V] {
	page := domain.Page[V]{HasMore: len(rows) > limit}
	rows = rows[:min(limit, len(rows))]
	page.Data = make([]V, 0, len(rows))
	for _, row := range rows {
		page.Data = append(page.Data, view(row))
	}
	return page
}

func unknownStart(what string) error {
	return domain.Errorf(
		domain.CodeInvalidRequest,
		"starting_after: there is no such %s; give the id of the last item of the page before",
		what,
	)
}

// storable gives the nearest text that PostgreSQL can hold: valid UTF-8 without zero bytes. Ids
// that callers make up, and what hubs say of themselves, may be anything.
func storable(s string) string {
	if utf8.ValidString(s) && !strings.Contains(s, "\x00") {
		return s
	}
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
}
