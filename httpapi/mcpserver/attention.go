package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"hubcloud/domain"
	"hubcloud/domain/attention"
	"hubcloud/httpapi/client"
)

// enoughConditions and enoughStates end an answer of needs_attention with the hub that is being
// read. maxConditions bounds what an answer has of one hub.
const enoughConditions, enoughStates, maxConditions = 50, 5000, 50

type attentionArguments struct {
	SiteID        string `json:"site_id,omitempty" jsonschema:"only at this site"`
	HubID         string `json:"hub_id,omitempty" jsonschema:"only of this hub"`
	StartingAfter string `json:"starting_after,omitempty" jsonschema:"next_starting_after of the answer before"`
}

// condition is something that needs attention.
type condition struct {
	Kind     attention.Kind  `json:"kind"`
	Severity domain.Severity `json:"severity"`
	HubID    string          `json:"hub_id"`
	SiteID   string          `json:"site_id"`
	// DeviceID is nil for a condition of the hub itself.
	DeviceID *int64          `json:"device_id,omitempty"`
	Device   string          `json:"device,omitempty"`
	Room     string          `json:"room,omitempty"`
	Key      string          `json:"key,omitempty"`
	Endpoint int64           `json:"endpoint,omitempty"`
	Value    json.RawMessage `json:"value,omitempty"`
	Wanted   json.RawMessage `json:"wanted,omitempty"`
	Event    string          `json:"event,omitempty"`
	Since    time.Time       `json:"since,omitzero"`
}

// attentionAnswer has the conditions of some hubs. Omitted counts those that are left out.
type attentionAnswer struct {
	listAnswer[condition]
	Omitted int `json:"omitted,omitempty"`
}

// needsAttention derives the conditions of hubs, one after the other, from their states.
func needsAttention(ctx context.Context, api *client.Client, in attentionArguments) (any, error) {
	answer := attentionAnswer{listAnswer: listAnswer[condition]{Data: []condition{}}}
	filter := client.StateFilter{SiteID: in.SiteID, HubID: in.HubID}
	var hub []client.State
	read := 0
	for after := in.StartingAfter; ; {
		page, err := api.StatesPage(ctx, filter, client.PageQuery{Limit: 500, StartingAfter: after})
		if err != nil {
			return nil, err
		}
		for _, state := range page.Data {
			if n := len(hub); n > 0 && hub[0].HubID != state.HubID {
				answer.add(hub)
				if len(answer.Data) >= enoughConditions || read >= enoughStates {
					answer.Next = hub[n-1].ID
					return answer, nil
				}
				hub = hub[:0]
			}
			hub = append(hub, state)
			after = state.ID
			read++
		}
		if after = cmp.Or(page.NextStartingAfter, after); !page.HasMore {
			break
		}
	}
	answer.add(hub)
	return answer, nil
}

// add adds the conditions of a hub.
func (a *attentionAnswer) add(states []client.State) {
	if len(states) == 0 {
		return
	}
	connection := states[0].Connection
	found := attention.Of(attention.HubState{
		ID: domain.HubID(states[0].HubID), Status: domain.HubStatus(connection.Status),
		Since: connection.Since, Devices: devicesOf(states),
	})
	if n := len(found) - maxConditions; n > 0 {
		found, a.Omitted = found[:maxConditions], a.Omitted+n
	}
	for _, c := range found {
		shown := condition{
			Kind: c.Kind, Severity: c.Severity, HubID: string(c.Hub), SiteID: states[0].SiteID,
			Device: c.Name, Room: c.Room, Key: c.Key, Endpoint: c.Endpoint, Value: c.Value,
			Wanted: c.Wanted, Event: c.Event, Since: c.Since,
		}
		if !c.Kind.OfHub() {
			shown.DeviceID = &c.DeviceID
		}
		a.Data = append(a.Data, shown)
	}
}

// devicesOf returns the devices of a hub's states, which are ordered by device. Of an alarm channel,
// only the last report is known.
func devicesOf(states []client.State) (all []attention.DeviceState) {
	for _, s := range states {
		if n := len(all); n == 0 || all[n-1].ID != s.Device.ID {
			all = append(all, attention.DeviceState{
				ID: s.Device.ID, Name: orZero(s.Device.Name), Room: orZero(s.Device.Room),
				AvailableSince: orZero(s.Device.AvailableSince),
			})
		}
		device := &all[len(all)-1]
		channel := attention.ChannelState{
			Key: s.Channel.Key, Endpoint: int64(s.Channel.Endpoint),
			Value: json.RawMessage(s.Channel.Value), ObservedAt: orZero(s.Channel.ObservedAt),
			ChangedAt: orZero(s.ChangedAt), Desired: json.RawMessage(s.Channel.Desired),
			DesiredAt: orZero(s.Channel.DesiredAt), Status: domain.ChannelStatus(s.Channel.Status),
		}
		if channel.Key == attention.AlarmChannel {
			channel.Standing = attention.Stand(nil, domain.StandingAlarm{
				Value: channel.Value, ObservedAt: channel.ObservedAt,
			})
		}
		device.Available = device.Available || s.Channel.Available
		device.Channels = append(device.Channels, channel)
	}
	return all
}

// orZero returns what a pointer points to; zero for nil.
func orZero[T any](value *T) (zero T) {
	if value == nil {
		return zero
	}
	return *value
}
