package live

import (
	"context"
	"time"

	"hubcloud/domain"
)

// statesPage is how many hubs are read at once.
const statesPage = 1000

// HubState is a hub as lists of hubs show it.
type HubState struct {
	ID     domain.HubID     `json:"id"`
	Name   string           `json:"name"`
	SiteID string           `json:"site_id"`
	Status domain.HubStatus `json:"status"`
	// Since is when Status last changed.
	Since time.Time `json:"since"`
	// Reason says in words why it is offline, or unknown; empty when it is online.
	Reason string `json:"reason"`
}

// States gives an organization's hubs in the order of their ids, or only the one that is asked for
// when it is not "".
func (l *Live) States(ctx context.Context, org string, only domain.HubID) ([]HubState, error) {
	if only != "" {
		hub, err := l.ReadModels.Hub(ctx, org, only)
		if err != nil {
			return nil, err
		}
		return []HubState{l.stateOf(hub)}, nil
	}
	var states []HubState
	for after := ""; ; after = string(states[len(states)-1].ID) {
		page, err := l.ReadModels.Hubs(ctx, org, nil, statesPage, after)
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
		if reason == nil { // lists leave it out
			reason = l.DisconnectReason(hub.ID)
		}
		state.Reason = explainDisconnect(reason)
	case domain.HubUnknown:
		state.Reason = "has not connected since it was added"
	}
	return state
}

// disconnects says in words what the broker's reasons mean to somebody who looks after hubs.
var disconnects = map[string]string{
	"client closed":                  "it closed the connection, or lost its power or network",
	"stale connection":               "it fell silent: its power or network may be down",
	"read error":                     "the connection broke: its power or network may be down",
	"write error":                    "the connection broke: its power or network may be down",
	"slow consumer (write deadline)": "it took nothing any more: its network may be bad",
	"slow consumer (pending bytes)":  "it took less than there was for it: its network may be bad",
	"duplicate client id":            "another connection of this hub took its place",
	"credentials revoked":            "its link was reset",
	"kicked":                         "the service cut it off, as after a reset of its link",
	"authentication expired":         "its certificate has expired",
	"server shutdown":                "the service was restarting",
	"protocol violation":             "it sent what the link does not allow",
	"parse error":                    "it sent what the link does not allow",
}

func explainDisconnect(reason *string) string {
	if reason == nil || *reason == "" {
		return "nobody said why"
	}
	if words, ok := disconnects[*reason]; ok {
		return words + " (" + *reason + ")"
	}
	return *reason
}

// changed gives the states that are not as they were told, and remembers them as told.
func changed(states []HubState, told map[domain.HubID]HubState) []HubState {
	var news []HubState
	for _, state := range states {
		if before, ok := told[state.ID]; !ok || before != state {
			told[state.ID] = state
			news = append(news, state)
		}
	}
	return news
}
