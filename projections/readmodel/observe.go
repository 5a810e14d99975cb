package readmodel

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
	"hubcloud/projections/schema"
)

var (
	//go:embed sql/observed_states.sql
	observedStates string
	//go:embed sql/observed_hubs.sql
	observedHubs string
	//go:embed sql/observed_orgs.sql
	observedOrgs string
)

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
	rows, err := s.pool.Query(ctx, observedHubs, org, hubIDs)
	if err != nil {
		return nil, err
	}
	var hub ObservedHub
	var connectedWhenAdded bool
	var online *bool
	var since *time.Time
	var hubs []ObservedHub
	_, err = pgx.ForEachRow(rows, []any{
		&hub.ID, &hub.Name, &hub.SiteID, &hub.Site, &hub.AddedAt, &connectedWhenAdded,
		&online, &since, &hub.Certain,
	}, func() error {
		h := hub
		h.AddedAt = h.AddedAt.UTC()
		h.Status, h.Since = connection(h.AddedAt, connectedWhenAdded, online, since)
		h.States = states[h.ID]
		hubs = append(hubs, h)
		return nil
	})
	return hubs, err
}

// OrgsNeedingAttention returns the organizations that have a hub that is offline, or a device that
// may need attention. It fails as ObserveOrg does.
func (s *Store) OrgsNeedingAttention(ctx context.Context) ([]string, error) {
	ask := func(ctx context.Context) ([]string, error) {
		rows, err := s.pool.Query(ctx, observedOrgs)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowTo[string])
	}
	return readOf(ctx, s, schema.Devices, noOrg, "organizations that need attention", ask)
}

// OrgsOf returns the organizations of hubs. Hubs that no organization has are missing. It fails as
// ObserveOrg does.
func (s *Store) OrgsOf(
	ctx context.Context, hubs []domain.HubID,
) (map[domain.HubID]string, error) {
	ask := func(ctx context.Context) (map[domain.HubID]string, error) {
		const query = "SELECT id, org_id FROM hubs WHERE id = ANY ($1::text[])"
		rows, err := s.pool.Query(ctx, query, hubs)
		if err != nil {
			return nil, err
		}
		orgs := make(map[domain.HubID]string, len(hubs))
		var hub domain.HubID
		var org string
		_, err = pgx.ForEachRow(rows, []any{&hub, &org}, func() error {
			orgs[hub] = org
			return nil
		})
		return orgs, err
	}
	return readOf(ctx, s, schema.Devices, noOrg, "organizations of hubs", ask)
}
