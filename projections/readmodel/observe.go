package readmodel

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
)

var (
	//go:embed sql/observed_states.sql
	observedStates string
	//go:embed sql/observed_hubs.sql
	observedHubs string
)

// maxSuspects is how many channels of an organization ObserveHubs selects because they may need
// attention, urgent ones first. Of more conditions nobody is mailed (alarmmail.MaxConditions).
const maxSuspects = 5000

// ObservedHub is a hub of an organization with the states of the devices that may need attention.
type ObservedHub struct {
	OrgID string
	ID    domain.HubID
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

// ObserveHubs returns the hubs of all organizations that are offline or have a device that may need
// attention, and the hubs of watched with their devices in it. A hub that no organization has is
// missing. It fails with service_unavailable until the first build of these read models is complete.
func (s *Store) ObserveHubs(
	ctx context.Context, watched map[domain.HubID][]int64,
) ([]ObservedHub, error) {
	var hubIDs []string
	var deviceIDs []int64
	for hub, devices := range watched {
		for _, device := range devices {
			hubIDs, deviceIDs = append(hubIDs, string(hub)), append(deviceIDs, device)
		}
	}
	ask := func(ctx context.Context, db *completeOnly) ([]ObservedHub, error) {
		rows, err := db.Query(ctx, observedStates, hubIDs, deviceIDs, maxSuspects)
		if err != nil {
			return nil, err
		}
		var org string
		var row stateRow
		states, orgs := map[string][]domain.ReportedState{}, map[string]string{}
		_, err = pgx.ForEachRow(rows, append([]any{&org}, row.into()...), func() error {
			state := row.state()
			hub := string(state.HubID)
			states[hub], orgs[hub] = append(states[hub], state), org
			return nil
		})
		if err != nil {
			return nil, err
		}
		return observed(ctx, db, hubIDs, states, orgs)
	}
	return readStates(ctx, s, noOrg, "hubs that need attention", ask)
}

// observed adds the hubs to the states of their channels. orgs are the organizations that the
// states were read for.
func observed(
	ctx context.Context, db *completeOnly, hubIDs []string,
	states map[string][]domain.ReportedState, orgs map[string]string,
) ([]ObservedHub, error) {
	for hub := range states {
		hubIDs = append(hubIDs, hub)
	}
	rows, err := db.Query(ctx, observedHubs, hubIDs)
	if err != nil {
		return nil, err
	}
	var hub ObservedHub
	var connectedWhenAdded bool
	var online *bool
	var since *time.Time
	var hubs []ObservedHub
	_, err = pgx.ForEachRow(rows, []any{
		&hub.OrgID, &hub.ID, &hub.Name, &hub.SiteID, &hub.Site, &hub.AddedAt, &connectedWhenAdded,
		&online, &since, &hub.Certain,
	}, func() error {
		h := hub
		h.AddedAt = h.AddedAt.UTC()
		h.Status, h.Since = connection(h.AddedAt, connectedWhenAdded, online, since)
		h.States = states[string(h.ID)]
		if org, ok := orgs[string(h.ID)]; ok && org != h.OrgID {
			// The hub has changed hands between the two queries.
			h.States, h.Certain = nil, false
		}
		hubs = append(hubs, h)
		return nil
	})
	return hubs, err
}
