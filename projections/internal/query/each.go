// Package query is the read models' static queries: what sqlc makes of ../../sql, and lists read
// row by row. It is written to by `make generate`, but for this file.
package query

import "context"

// What lists are made of, row by row: the queries that sqlc has made, without a slice of rows that
// is copied from at once. A row is good until use returns.

// EachSite gives the rows of Sites.
func (q *Queries) EachSite(ctx context.Context, arg SitesParams, use func(*SitesRow)) error {
	var row SitesRow
	into := []any{&row.ID, &row.Name, &row.CreatedAt, &row.HubCount}
	return q.each(ctx, into, func() { use(&row) }, sites, arg.OrgID, arg.After, arg.RowLimit)
}

// EachHubOfOrg gives the rows of HubsOfOrg.
func (q *Queries) EachHubOfOrg(
	ctx context.Context, arg HubsOfOrgParams, use func(*HubsOfOrgRow),
) error {
	var row HubsOfOrgRow
	return q.each(
		ctx, row.into(), func() { use(&row) }, hubsOfOrg, arg.OrgID, arg.After, arg.RowLimit,
	)
}

// EachHubOfSite gives the rows of HubsOfSite.
func (q *Queries) EachHubOfSite(
	ctx context.Context, arg HubsOfSiteParams, use func(*HubsOfOrgRow),
) error {
	var row HubsOfOrgRow
	return q.each(
		ctx, row.into(), func() { use(&row) }, hubsOfSite, arg.OrgID, arg.SiteID, arg.After,
		arg.RowLimit,
	)
}

func (row *HubsOfOrgRow) into() []any {
	return []any{
		&row.ID,
		&row.Name,
		&row.SiteID,
		&row.RegisteredAt,
		&row.ConnectedWhenAdded,
		&row.Online,
		&row.Since,
	}
}

func (q *Queries) each(ctx context.Context, into []any, use func(), sql string, args ...any) error {
	rows, err := q.db.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		use()
	}
	return rows.Err()
}
