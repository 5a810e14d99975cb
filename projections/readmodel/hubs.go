package readmodel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
	"hubcloud/projections/database"
	"hubcloud/projections/internal/query"
)

// Hubs returns an organization's hubs ordered by id, without the fields that only single reads
// have: at most limit (1 or more), after the hub startingAfter unless that is empty, and only those
// at site unless that is nil. A site that the organization does not have has no hubs. It fails with
// invalid_request if startingAfter is no hub of the organization; a hub that has left the site is a
// valid start.
func (s *Store) Hubs(
	ctx context.Context, org string, site *string, limit int, startingAfter string,
) (domain.Page[domain.Hub], error) {
	return read(ctx, s, func(ctx context.Context) (domain.Page[domain.Hub], error) {
		return s.hubs(ctx, org, site, limit, startingAfter)
	})
}

func (s *Store) hubs(
	ctx context.Context, org string, site *string, limit int, startingAfter string,
) (domain.Page[domain.Hub], error) {
	none := domain.Page[domain.Hub]{}
	startingAfter = database.StorableText(startingAfter)
	if err := s.checkHubStart(ctx, org, startingAfter); err != nil {
		return none, err
	}
	page := newPage[domain.Hub](limit)
	use := func(row *query.HubsOfOrgRow) { page.add(listedHub(row)) }
	var err error
	if site == nil {
		err = s.queries.EachHubOfOrg(
			ctx,
			query.HubsOfOrgParams{OrgID: org, After: startingAfter, RowLimit: int32(limit) + 1},
			use,
		)
	} else {
		err = s.queries.EachHubOfSite(ctx, query.HubsOfSiteParams{
			OrgID: org, SiteID: database.StorableText(*site), After: startingAfter,
			RowLimit: int32(limit) + 1,
		}, use)
	}
	if err != nil {
		return none, fmt.Errorf("read models: hubs: %w", err)
	}
	return page.Page, nil
}

// FindHubs is Hubs restricted to a site, unless that is empty, and to hubs with text in their name,
// ignoring case as far as the database's locale knows letters, or in their id with or without
// dashes. An empty text matches every hub.
func (s *Store) FindHubs(
	ctx context.Context, org, site, text string, limit int, startingAfter string,
) (domain.Page[domain.Hub], error) {
	return read(ctx, s, func(ctx context.Context) (domain.Page[domain.Hub], error) {
		return s.findHubs(ctx, org, site, text, limit, startingAfter)
	})
}

func (s *Store) findHubs(
	ctx context.Context, org, site, text string, limit int, startingAfter string,
) (domain.Page[domain.Hub], error) {
	none := domain.Page[domain.Hub]{}
	startingAfter = database.StorableText(startingAfter)
	if err := s.checkHubStart(ctx, org, startingAfter); err != nil {
		return none, err
	}
	rows, err := s.queries.FindHubs(ctx, query.FindHubsParams{
		OrgID: org, SiteID: database.StorableText(site), Text: database.StorableText(text),
		After:    startingAfter,
		RowLimit: int32(limit) + 1,
	})
	if err != nil {
		return none, fmt.Errorf("read models: hubs: %w", err)
	}
	return pageOf(rows, limit, func(row query.FindHubsRow) domain.Hub {
		of := query.HubsOfOrgRow(row)
		return listedHub(&of)
	}), nil
}

// checkHubStart returns nil if startingAfter is empty or a hub of the organization.
func (s *Store) checkHubStart(ctx context.Context, org, startingAfter string) error {
	if startingAfter == "" {
		return nil
	}
	known, err := s.queries.OrgHasHub(ctx, query.OrgHasHubParams{OrgID: org, ID: startingAfter})
	switch {
	case err != nil:
		return fmt.Errorf("read models: hubs: %w", err)
	case !known:
		return unknownStart("hub")
	}
	return nil
}

// Hub returns a hub of the organization with all fields, or not_found.
func (s *Store) Hub(ctx context.Context, org string, id domain.HubID) (domain.Hub, error) {
	return read(ctx, s, func(ctx context.Context) (domain.Hub, error) {
		return s.hub(ctx, org, id)
	})
}

func (s *Store) hub(ctx context.Context, org string, id domain.HubID) (domain.Hub, error) {
	row, err := s.queries.Hub(
		ctx, query.HubParams{OrgID: org, ID: database.StorableText(string(id))},
	)
	if errors.Is(err, pgx.ErrNoRows) {
		return domain.Hub{}, domain.ErrHubNotFound()
	}
	if err != nil {
		return domain.Hub{}, fmt.Errorf("read models: hub: %w", err)
	}
	hub := listedHub(&query.HubsOfOrgRow{
		ID: row.ID, Name: row.Name, SiteID: row.SiteID, RegisteredAt: row.RegisteredAt,
		ConnectedWhenAdded: row.ConnectedWhenAdded, Online: row.Online, Since: row.Since,
	})
	// An unknown hub has not connected since the organization added it: its address and reason are
	// those of an earlier owner.
	if hub.Status != domain.HubUnknown {
		hub.PublicIP, hub.DisconnectReason = row.PublicIp, row.Reason
	}
	hub.Firmware, hub.Network = rawOf(row.Firmware), rawOf(row.Network)
	return hub, nil
}

func listedHub(row *query.HubsOfOrgRow) domain.Hub {
	hub := domain.Hub{
		ID:      domain.HubID(row.ID),
		Name:    row.Name,
		SiteID:  row.SiteID,
		AddedAt: row.RegisteredAt.UTC(),
	}
	hub.Status, hub.Since = connection(
		hub.AddedAt, row.ConnectedWhenAdded, row.Online, row.Since,
	)
	return hub
}

// connection returns a hub's status and its time. online and since are the known presence; nil if
// there is none. A hub is unknown until it connects after it was added, unless it was connected at
// that moment.
func connection(
	added time.Time, connectedWhenAdded bool, online *bool, since *time.Time,
) (domain.HubStatus, time.Time) {
	switch {
	case online == nil || since == nil:
		if connectedWhenAdded { // its presence is not projected yet
			return domain.HubOnline, added
		}
		return domain.HubUnknown, added
	case *online:
		return domain.HubOnline, latest(added, *since)
	case since.Before(added) && !connectedWhenAdded:
		return domain.HubUnknown, added
	default:
		return domain.HubOffline, latest(added, *since)
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a.UTC()
	}
	return b.UTC()
}

func rawOf(text *string) json.RawMessage {
	if text == nil {
		return nil
	}
	return json.RawMessage(*text)
}
