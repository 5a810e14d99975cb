package projections

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
	"hubcloud/projections/internal/query"
)

// hubs is Hubs, asked once.
func (s *Store) hubs(
	ctx context.Context, org string, site *string, limit int, startingAfter string,
) (domain.Page[domain.Hub], error) {
	none := domain.Page[domain.Hub]{}
	if startingAfter = storable(startingAfter); startingAfter != "" {
		switch known, err := s.queries.OrgHasHub(ctx, query.OrgHasHubParams{
			OrgID: org, ID: startingAfter,
		}); {
		case err != nil:
			return none, fmt.Errorf("read models: hubs: %w", err)
		case !known:
			return none, unknownStart("hub")
		}
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
			OrgID: org, SiteID: storable(*site), After: startingAfter, RowLimit: int32(limit) + 1,
		}, use)
	}
	if err != nil {
		return none, fmt.Errorf("read models: hubs: %w", err)
	}
	return page.Page, nil
}

// findHubs is FindHubs, asked once.
func (s *Store) findHubs(
	ctx context.Context, org, site, text string, limit int, startingAfter string,
) (domain.Page[domain.Hub], error) {
	none := domain.Page[domain.Hub]{}
	startingAfter = storable(startingAfter)
	if startingAfter != "" {
		switch known, err := s.queries.OrgHasHub(ctx, query.OrgHasHubParams{
			OrgID: org, ID: startingAfter,
		}); {
		case err != nil:
			return none, fmt.Errorf("read models: hubs: %w", err)
		case !known:
			return none, unknownStart("hub")
		}
	}
	rows, err := s.queries.HubsFound(ctx, query.HubsFoundParams{
		OrgID: org, SiteID: storable(site), Text: storable(text), After: startingAfter,
		RowLimit: int32(limit) + 1,
	})
	if err != nil {
		return none, fmt.Errorf("read models: hubs: %w", err)
	}
	return pageOf(rows, limit, func(row query.HubsFoundRow) domain.Hub {
		of := query.HubsOfOrgRow(row)
		return listedHub(&of)
	}), nil
}

// hub is Hub, asked once.
func (s *Store) hub(ctx context.Context, org string, id domain.HubID) (domain.Hub, error) {
	row, err := s.queries.Hub(ctx, query.HubParams{OrgID: org, ID: storable(string(id))})
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
	// Where it connected from, and why that ended, before this organization had it is none of its
	// business.
	if hub.Status != domain.HubUnknown {
		hub.PublicIP, hub.DisconnectReason = row.PublicIp, row.Reason
	}
	hub.Firmware, hub.Network = rawOf(row.Firmware), rawOf(row.Network)
	return hub, nil
}

func listedHub(row *query.HubsOfOrgRow) domain.Hub {
	hub := domain.Hub{
		ID:           domain.HubID(row.ID),
		Name:         row.Name,
		SiteID:       row.SiteID,
		RegisteredAt: row.RegisteredAt.UTC(),
	}
	hub.Status, hub.Since = connection(
		hub.RegisteredAt, row.ConnectedWhenAdded, row.Online, row.Since,
	)
	return hub
}

// connection gives a hub's status and since when it has it. online and since are the presence that
// is known; nil when there is none. A hub is unknown until it connects after it was added, unless
// it was connected at that moment.
func connection(
	added time.Time, connectedWhenAdded bool, online *bool, since *time.Time,
) (domain.HubStatus, time.Time) {
	switch {
	case online == nil || since == nil:
		if connectedWhenAdded { // its presence is on its way here
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
