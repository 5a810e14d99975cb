package readmodel

import (
	"context"
	"encoding/json"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/schema"
)

// Hubs returns the hubs within a reach ordered by id, without the fields that only single reads
// have: at most limit (1 or more), after the hub startingAfter unless that is empty, and only those
// at site unless that is nil. A site that is not within the reach has no hubs. It fails with
// invalid_request if startingAfter is no hub within the reach; a hub that has left the site is
// a valid start.
func (s *Store) Hubs(
	ctx context.Context, reach domain.Reach, site *string, limit int, startingAfter string,
) (domain.Page[domain.Hub], error) {
	org := reach.OrgID
	return read(ctx, s, org, "hubs", func(ctx context.Context) (domain.Page[domain.Hub], error) {
		after, rowLimit := schema.StorableText(startingAfter), int32(limit)+1
		if err := s.checkHubStart(ctx, reach, after); err != nil {
			return domain.Page[domain.Hub]{}, err
		}
		if site == nil {
			rows, err := s.queries.HubsOfOrg(ctx, schema.HubsOfOrgParams{
				OrgID: org, After: after, Within: reach.Sites, RowLimit: rowLimit,
			})
			return pageOf(rows, limit, listedHub), err
		}
		rows, err := s.queries.HubsOfSite(ctx, schema.HubsOfSiteParams{
			OrgID: org, SiteID: schema.StorableText(reach.Site(*site)), After: after, RowLimit: rowLimit,
		})
		return pageOf(rows, limit, func(row schema.HubsOfSiteRow) domain.Hub {
			return listedHub(schema.HubsOfOrgRow(row))
		}), err
	})
}

// FindHubs is Hubs restricted to a site, unless that is empty, and to hubs with text in their name,
// ignoring case as far as the database's locale knows letters, or in their id with or without
// dashes. An empty text matches every hub.
func (s *Store) FindHubs(
	ctx context.Context, org, site, text string, limit int, startingAfter string,
) (domain.Page[domain.Hub], error) {
	return read(ctx, s, org, "hubs", func(ctx context.Context) (domain.Page[domain.Hub], error) {
		after := schema.StorableText(startingAfter)
		if err := s.checkHubStart(ctx, domain.Reach{OrgID: org}, after); err != nil {
			return domain.Page[domain.Hub]{}, err
		}
		rows, err := s.queries.FindHubs(ctx, schema.FindHubsParams{
			OrgID: org, SiteID: schema.StorableText(site), Text: schema.StorableText(text),
			After: after, RowLimit: int32(limit) + 1,
		})
		return pageOf(rows, limit, func(row schema.FindHubsRow) domain.Hub {
			return listedHub(schema.HubsOfOrgRow(row))
		}), err
	})
}

// checkHubStart returns an error unless startingAfter is empty or a hub within the reach.
func (s *Store) checkHubStart(ctx context.Context, reach domain.Reach, startingAfter string) error {
	if startingAfter == "" {
		return nil
	}
	known, err := s.queries.OrgHasHub(ctx, schema.OrgHasHubParams{
		OrgID: reach.OrgID, ID: startingAfter, Within: reach.Sites,
	})
	if err == nil && !known {
		return unknownStart("hub")
	}
	return err
}

// Hub returns a hub of the organization with all fields, or not_found.
func (s *Store) Hub(ctx context.Context, org string, id domain.HubID) (domain.Hub, error) {
	return read(ctx, s, org, "hub", func(ctx context.Context) (domain.Hub, error) {
		row, err := s.queries.Hub(
			ctx, schema.HubParams{OrgID: org, ID: schema.StorableText(string(id))},
		)
		return hubOf(row), ifNoRow(err, domain.ErrHubNotFound())
	})
}

func hubOf(row schema.HubRow) domain.Hub {
	hub := listedHub(schema.HubsOfOrgRow{
		ID: row.ID, Name: row.Name, SiteID: row.SiteID, RegisteredAt: row.RegisteredAt,
		ConnectedWhenAdded: row.ConnectedWhenAdded, Online: row.Online, Since: row.Since,
	})
	// A hub with the status unknown has not connected since the organization added it: its address
	// and reason are from the time of an earlier owner.
	if hub.Status != domain.HubUnknown {
		hub.PublicIP, hub.DisconnectReason = row.PublicIp, row.Reason
	}
	hub.ChannelsOmitted = row.Omitted
	hub.Firmware, hub.Network = rawOf(row.Firmware), rawOf(row.Network)
	return hub
}

func listedHub(row schema.HubsOfOrgRow) domain.Hub {
	hub := domain.Hub{
		ID:      domain.HubID(row.ID),
		Name:    row.Name,
		SiteID:  row.SiteID,
		AddedAt: row.RegisteredAt.UTC(),
	}
	hub.Status, hub.Since = connection(hub.AddedAt, row.ConnectedWhenAdded, row.Online, row.Since)
	return hub
}

// connection returns a hub's status and since when it has that status. online and since are the
// hub's presence; nil if it has none. A hub has the status unknown until it connects after it was
// added, unless it was connected when it was added.
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
