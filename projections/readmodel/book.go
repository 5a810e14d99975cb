package readmodel

import (
	"context"
	_ "embed"
	"encoding/json"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
	"hubcloud/projections/schema"
)

//go:embed sql/book.sql
var bookQuery string

// BookPage returns the newest entries of an organization's book that a filter chooses, newest first:
// at most limit (1 or more) before a place, and the place of the last one. It fails with
// service_unavailable until the first build of these read models is complete.
func (s *Store) BookPage(
	ctx context.Context, org string, filter domain.BookFilter, limit int, before domain.BookPlace,
) (page domain.Page[domain.BookEntry], last domain.BookPlace, err error) {
	type row struct {
		Seq   int64
		At    time.Time
		Entry string
	}
	page, err = readOf(ctx, s, schema.Book, org, "book", func(
		ctx context.Context,
	) (page domain.Page[domain.BookEntry], err error) {
		found, err := s.pool.Query(
			ctx, bookQuery, org, schema.StorableText(filter.SiteID), schema.StorableText(string(filter.Kind)),
			strings.Fields(strings.ToLower(schema.StorableText(filter.Place))),
			strings.ToLower(schema.StorableText(filter.Who)), orNull(filter.From), orNull(filter.To),
			orNull(before.At), int64(min(before.Sequence, math.MaxInt64)), limit+1,
		)
		if err != nil {
			return page, err
		}
		rows, err := pgx.CollectRows(found, pgx.RowToStructByPos[row])
		for i, r := range rows {
			if i == limit {
				page.HasMore = true
				break
			}
			var e domain.BookEntry
			if err := json.Unmarshal([]byte(r.Entry), &e); err != nil {
				return page, err
			}
			page.Data = append(page.Data, e)
			last = domain.BookPlace{At: r.At, Sequence: uint64(r.Seq)}
		}
		return page, err
	})
	return page, last, err
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
