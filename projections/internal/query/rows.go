package query

import "context"

// EachSite runs the query Sites without a slice of all rows. It calls use for each row, which is
// valid until use returns.
func (q *Queries) EachSite(ctx context.Context, arg SitesParams, use func(*SitesRow)) error {
	var row SitesRow
	into := []any{&row.ID, &row.Name, &row.CreatedAt, &row.HubCount}
	return q.each(ctx, into, func() { use(&row) }, sites, arg.OrgID, arg.After, arg.RowLimit)
}

// EachHubOfOrg is EachSite for the query HubsOfOrg.
func (q *Queries) EachHubOfOrg(
	ctx context.Context, arg HubsOfOrgParams, use func(*HubsOfOrgRow),
) error {
	var row HubsOfOrgRow
	return q.each(
		ctx, row.into(), func() { use(&row) }, hubsOfOrg, arg.OrgID, arg.After, arg.RowLimit,
	)
}

// EachHubOfSite is EachSite for the query HubsOfSite.
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
