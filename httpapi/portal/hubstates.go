package portal

import (
	"context"
	"time"

	"hubcloud/domain"
)

// statesPage is how many hubs one query of States reads.
const statesPage = 1000

// hubState is a hub in lists of hubs.
type hubState struct {
	ID     domain.HubID     `json:"id"`
	Name   string           `json:"name"`
	SiteID string           `json:"site_id"`
	Status domain.HubStatus `json:"status"`
	// Since is when Status changed last.
	Since time.Time `json:"since"`
	// AddedAt is when the organization added the hub.
	AddedAt time.Time `json:"-"`
	// Reason is the displayed reason for Status, empty for a hub that is online.
	Reason string `json:"reason"`
	// Reconnecting is until when a hub that is offline counts as reconnecting after a restart of
	// the service; zero if it does not.
	Reconnecting time.Time `json:"reconnecting_until,omitzero"`
}

// statusReconnecting is displayed as the status of hubs that are reconnecting.
const statusReconnecting domain.HubStatus = "reconnecting"

// Shown returns the status that is displayed at a time.
func (s hubState) Shown(now time.Time) domain.HubStatus {
	if now.Before(s.Reconnecting) {
		return statusReconnecting
	}
	return s.Status
}

// hubStates returns the states of an organization's hubs in the order of their ids. If only is not
// "", it returns the state of that hub, and a not_found error if the organization does not have it.
func (p *Portal) hubStates(ctx context.Context, org string, only domain.HubID) ([]hubState, error) {
	if only != "" {
		hub, err := p.ReadModels.Hub(ctx, org, only)
		if err != nil {
			return nil, err
		}
		return []hubState{p.stateOf(hub)}, nil
	}
	return p.readStates(ctx, domain.Reach{OrgID: org}, nil)
}

// statesAt returns the states of the hubs at a site, or as hubStates those of one hub, or of all if
// site is "" too.
func (p *Portal) statesAt(
	ctx context.Context, org, site string, hub domain.HubID,
) ([]hubState, error) {
	if site == "" || hub != "" {
		return p.hubStates(ctx, org, hub)
	}
	return p.readStates(ctx, domain.Reach{OrgID: org}, &site)
}

// readStates returns the states of the hubs within a reach, only those at the site unless it is nil.
func (p *Portal) readStates(
	ctx context.Context, reach domain.Reach, site *string,
) ([]hubState, error) {
	var states []hubState
	for after := ""; ; after = string(states[len(states)-1].ID) {
		page, err := p.ReadModels.Hubs(ctx, reach, site, statesPage, after)
		if err != nil {
			return nil, err
		}
		for _, hub := range page.Data {
			states = append(states, p.stateOf(hub))
		}
		if !page.HasMore || len(page.Data) == 0 {
			return states, nil
		}
	}
}

// stateOf returns the state of a hub of the read models.
func (p *Portal) stateOf(hub domain.Hub) hubState {
	state := hubState{
		ID: hub.ID, SiteID: hub.SiteID, Status: hub.Status, Since: hub.Since, AddedAt: hub.AddedAt,
	}
	if hub.Name != nil {
		state.Name = *hub.Name
	}
	switch hub.Status {
	case domain.HubOffline:
		reason := hub.DisconnectReason
		if reason == nil { // ReadModels.Hubs does not return reasons
			reason = p.DisconnectReason(hub.ID)
		}
		state.Reason = disconnectText(reason)
		state.Reconnecting = domain.ReconnectingUntil(hub.Status, hub.Since, reason)
	case domain.HubUnknown:
		state.Reason = "not connected since it was added"
	}
	return state
}

// disconnectText explains the broker's reason for a disconnection.
func disconnectText(reason *string) string {
	if reason == nil || *reason == "" {
		return scriptTexts["reason unknown"]
	}
	if words, ok := scriptTexts["disconnect "+*reason]; ok {
		return words + " (" + *reason + ")"
	}
	return *reason
}
