package readmodel

import (
	"context"
	_ "embed"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/schema"
)

//go:embed sql/observed_states.sql
var observedStates string

// maxSuspects is how many channels of an organization ObserveOrg selects because they may need
// attention, urgent ones first. Of more conditions nobody is mailed (attention.MaxConditions).
const maxSuspects = 5000

// ObservedHub is a hub of an organization with the states of the devices that may need attention.
type ObservedHub struct {
	ID domain.HubID
	// Name is the hub's name; "" for none. SiteID and Site are its site.
	Name, SiteID, Site string
	AddedAt            time.Time
	Status             domain.HubStatus
	// Since is when Status changed last.
	Since time.Time
	// Certain reports that all devices of the hub are known.
	Certain bool
	// States are the states of the channels of the devices, in the order of devices.
	States []domain.ReportedState
}

// ObserveOrg returns the hubs of an organization that are offline or have a device that may need
// attention, and the organization's hubs of watched with their devices in it. It fails with
// service_unavailable until the first build of these read models is complete.
func (s *Store) ObserveOrg(
	ctx context.Context, org string, watched map[domain.HubID][]int64,
) ([]ObservedHub, error) {
	var hubIDs []string
	var deviceIDs []int64
	for hub, devices := range watched {
		for _, device := range devices {
			hubIDs, deviceIDs = append(hubIDs, string(hub)), append(deviceIDs, device)
		}
	}
	ask := func(ctx context.Context) ([]ObservedHub, error) {
		rows, err := s.pool.Query(ctx, observedStates, org, hubIDs, deviceIDs, maxSuspects)
		if err != nil {
			return nil, err
		}
		all, err := collectStates(rows)
		if err != nil {
			return nil, err
		}
		states := map[domain.HubID][]domain.ReportedState{}
		for _, state := range all {
			states[state.HubID] = append(states[state.HubID], state)
		}
		return s.observed(ctx, org, hubIDs, states)
	}
	return readOf(ctx, s, schema.Devices, noOrg, "hubs that need attention", ask)
}

// observed adds the hubs to the states of their channels.
func (s *Store) observed(
	ctx context.Context, org string, hubIDs []string,
	states map[domain.HubID][]domain.ReportedState,
) ([]ObservedHub, error) {
	for hub := range states {
		hubIDs = append(hubIDs, string(hub))
	}
	rows, err := s.queries.HubsObserved(ctx, schema.HubsObservedParams{OrgID: org, Hubs: hubIDs})
	return pageOf(rows, len(rows), func(row schema.HubsObservedRow) ObservedHub {
		hub := ObservedHub{
			ID: domain.HubID(row.ID), Name: row.Name, SiteID: row.SiteID, Site: row.Site,
			AddedAt: row.RegisteredAt.UTC(), Certain: row.Certain, States: states[domain.HubID(row.ID)],
		}
		hub.Status, hub.Since = connection(hub.AddedAt, row.ConnectedWhenAdded, row.Online, row.Since)
		return hub
	}).Data, err
}

// OrgsNeedingAttention returns the organizations that have a hub that is offline, or a device that
// may need attention. It fails as ObserveOrg does.
func (s *Store) OrgsNeedingAttention(ctx context.Context) ([]string, error) {
	return readOf(
		ctx, s, schema.Devices, noOrg, "organizations that need attention", s.queries.OrgsNeedingAttention,
	)
}

// OrgsOf returns the organizations of hubs. Hubs that no organization has are missing. It fails as
// ObserveOrg does.
func (s *Store) OrgsOf(
	ctx context.Context, hubs []domain.HubID,
) (map[domain.HubID]string, error) {
	ask := func(ctx context.Context) (map[domain.HubID]string, error) {
		ids := make([]string, len(hubs))
		for i, id := range hubs {
			ids[i] = string(id)
		}
		rows, err := s.queries.OrgsOfHubs(ctx, ids)
		orgs := make(map[domain.HubID]string, len(rows))
		for _, row := range rows {
			orgs[domain.HubID(row.ID)] = row.OrgID
		}
		return orgs, err
	}
	return readOf(ctx, s, schema.Devices, noOrg, "organizations of hubs", ask)
}
