package live

import (
	"context"
	"time"

	"hubcloud/domain"
)

// statesPage is how many hubs one query of States reads.
const statesPage = 1000

// HubState is a hub in lists of hubs.
type HubState struct {
	ID     domain.HubID     `json:"id"`
	Name   string           `json:"name"`
	SiteID string           `json:"site_id"`
	Status domain.HubStatus `json:"status"`
	// Since is when Status changed last.
	Since time.Time `json:"since"`
	// Reason is the displayed reason for Status, empty for a hub that is online.
	Reason string `json:"reason"`
}

// States returns the states of an organization's hubs in the order of their ids. If only is not "",
// it returns the state of that hub, and a not_found error if the organization does not have it.
func (l *Live) States(ctx context.Context, org string, only domain.HubID) ([]HubState, error) {
	if only != "" {
		hub, err := l.cfg.ReadModels.Hub(ctx, org, only)
		if err != nil {
			return nil, err
		}
		return []HubState{l.stateOf(hub)}, nil
	}
	var states []HubState
	for after := ""; ; after = string(states[len(states)-1].ID) {
		page, err := l.cfg.ReadModels.Hubs(ctx, org, nil, statesPage, after)
		if err != nil {
			return nil, err
		}
		for _, hub := range page.Data {
			states = append(states, l.stateOf(hub))
		}
		if !page.HasMore || len(page.Data) == 0 {
			return states, nil
		}
	}
}

func (l *Live) stateOf(hub domain.Hub) HubState {
	state := HubState{ID: hub.ID, SiteID: hub.SiteID, Status: hub.Status, Since: hub.Since}
	if hub.Name != nil {
		state.Name = *hub.Name
	}
	switch hub.Status {
	case domain.HubOffline:
		reason := hub.DisconnectReason
		if reason == nil { // ReadModels.Hubs does not return reasons
			reason = l.cfg.DisconnectReason(hub.ID)
		}
		state.Reason = disconnectText(reason)
	case domain.HubUnknown:
		state.Reason = "not connected since it was added"
	}
	return state
}

// disconnectTexts explains the broker's reasons for disconnections.
var disconnectTexts = map[string]string{
	"client closed":                  "closed the connection, or lost power or network",
	"stale connection":               "stopped responding: check its power and network",
	"read error":                     "connection failed: check its power and network",
	"write error":                    "connection failed: check its power and network",
	"slow consumer (write deadline)": "stopped receiving: its network may be slow",
	"slow consumer (pending bytes)":  "received too slowly: its network may be slow",
	"duplicate client id":            "replaced by a new connection of this hub",
	"credentials revoked":            "link reset",
	"kicked":                         "disconnected by the service, for example after a link reset",
	"authentication expired":         "certificate expired",
	"server shutdown":                "service restarting",
	"protocol violation":             "sent invalid data",
	"parse error":                    "sent invalid data",
}

func disconnectText(reason *string) string {
	if reason == nil || *reason == "" {
		return "reason unknown"
	}
	if words, ok := disconnectTexts[*reason]; ok {
		return words + " (" + *reason + ")"
	}
	return *reason
}
