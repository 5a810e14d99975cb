package portal

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

const (
	locked   = `{"key":"lock","endpoint":0,"value":true}`
	unlocked = `{"key":"lock","endpoint":0,"value":false}`
	jam      = `{"key":"alarm","endpoint":0,"value":{"type":"Access Control","event":"Lock jammed","active":true}}`
)

// The outcome of a command was "Done" for a door that had jammed, once somebody locked it by hand,
// and depended on the clock of the replica that sent the command. It is what the device reports
// first after the command, in the order of the hub's log.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	const level40, level80 = `{"key":"level","endpoint":0,"value":40}`,
		`{"key":"level","endpoint":0,"value":80}`
	r := newTestLive(t, Config{})
	const warm21, warm2111 = `{"key":"heating_setpoint","endpoint":0,"value":21}`,
		`{"key":"heating_setpoint","endpoint":0,"value":21.11}`
	for name, tt := range map[string]struct {
		desired string
		reports []string // "desired" stands for the next command, which asks for unlocked
		want    commandOutcome
		value   string
	}{
		"done":                 {locked, []string{locked}, outcomeDone, "true"},
		"not done":             {locked, []string{unlocked}, outcomeNotDone, "false"},
		"jammed":               {locked, []string{unlocked, jam}, outcomeJammed, "false"},
		"locked by hand later": {locked, []string{unlocked, jam, locked}, outcomeJammed, "false"},
		"opened later":         {locked, []string{locked, unlocked}, outcomeDone, "true"},
		"passes other values":  {level80, []string{level40, level80}, outcomeDone, "80"},
		"stops on its way":     {level80, []string{level40}, outcomeNotDone, "40"},
		"no resolution known":  {warm21, []string{warm2111}, outcomeOther, "21.11"},
		"no report":            {locked, nil, outcomePending, ""},
		"no report in time":    {locked, nil, outcomeNone, ""},
		"replaced":             {locked, []string{"desired"}, outcomeReplaced, ""},
		"report of the next":   {locked, []string{unlocked, "desired", locked}, outcomeNotDone, "false"},
	} {
		t.Run(name, func(t *testing.T) {
			hub := r.newHub()
			r.append(hub, "channel.observed", 1, tt.desired) // before the command
			position, err := r.logs.EndCursor(t.Context(), hub)
			streamstest.Must(t, err)
			var asked struct {
				Key   string
				Value json.RawMessage
			}
			streamstest.Must(t, json.Unmarshal([]byte(tt.desired), &asked))
			command := domain.CommandRecord{
				ID: name, HubID: hub, DeviceID: 1, Key: asked.Key, Value: asked.Value,
				Outcome: "accepted", Position: position,
				// The clock of the replica that sent the command is ahead of the broker's.
				At: time.Now().Add(20 * time.Second),
			}
			if tt.want == outcomeNone {
				command.At = time.Now().Add(-time.Hour)
			}
			// What an earlier command asked for, and what the device reported to it.
			r.append(hub, "channel.desired", 1, unlocked)
			r.append(hub, "channel.observed", 1, tt.desired)
			r.append(hub, "channel.desired", 1, tt.desired)
			r.append(hub, "channel.observed", 2, tt.desired) // another device
			for _, report := range tt.reports {
				if report == "desired" {
					r.append(hub, "channel.desired", 1, unlocked)
					continue
				}
				r.append(hub, "channel.observed", 1, report)
			}
			rejected := command
			rejected.Outcome = "hub_offline"
			got, reported := r.live.outcomesOf(
				t.Context(), []domain.CommandRecord{command, rejected},
			)
			if got[0] != tt.want || got[1] != outcomeUnknown || string(reported[0]) != tt.value {
				t.Errorf(
					"got outcomes %q with the value %q, want %q with %q, and none", got, reported[0],
					tt.want, tt.value,
				)
			}
		})
	}
}

// sentCommands are the recorded commands of a hub.
type sentCommands []domain.CommandRecord

func (s sentCommands) History(
	context.Context, domain.HubID, time.Time, int,
) ([]domain.CommandRecord, error) {
	return s, nil
}

// A channel that differed from its last command was called not done or changed by the times of the
// hub, whose clock may be wrong: a door that had jammed was "changed" after the clock was set.
func TestDivergedByTheLog(t *testing.T) {
	t.Parallel()
	r := newTestLive(t, Config{})
	at := func(after time.Duration) *string { return new(domain.FormatTime(day.Add(after))) }
	for name, tt := range map[string]struct {
		reports  []string
		observed time.Duration // after the command, by the hub's clock
		unknown  bool          // nobody knows of the command
		want     string
	}{
		"jammed":                     {[]string{unlocked}, time.Second, false, "Not done:"},
		"jammed, clock set after it": {[]string{unlocked}, time.Hour, false, "Not done:"},
		"opened":                     {[]string{locked, unlocked}, time.Hour, false, "Changed:"},
		"opened at once":             {[]string{locked, unlocked}, time.Second, false, "Changed:"},
		"no report":                  {nil, time.Hour, false, "Not done:"},
		"asked in the building":      {[]string{unlocked}, time.Second, true, "Different:"},
	} {
		t.Run(name, func(t *testing.T) {
			hub := r.newHub()
			position, err := r.logs.EndCursor(t.Context(), hub)
			streamstest.Must(t, err)
			r.append(hub, "channel.desired", 1, locked)
			for _, report := range tt.reports {
				r.append(hub, "channel.observed", 1, report)
			}
			r.live.History = sentCommands{}
			if !tt.unknown {
				r.live.History = sentCommands{{
					ID: name, OrgID: "org", HubID: hub, DeviceID: 1, Key: "lock", Value: json.RawMessage("true"),
					Position: position, At: time.Now(),
				}}
			}
			r.devices = []domain.Device{{ID: 1, Channels: []domain.Channel{{
				Key: "lock", Value: json.RawMessage("false"), Desired: json.RawMessage("true"),
				Status: domain.ChannelDiverged, DesiredAt: at(0), ObservedAt: at(tt.observed),
			}}}}
			device, err := r.live.getDevice(t.Context(), "org", hub, 1)
			if err != nil || device.Channels[0].StatusTag != tt.want {
				t.Errorf("got %+v, %v, want the tag %q", device, err, tt.want)
			}
		})
	}
}

// The list of commands had "Not done: the device reports 21.11" after 21 °C for a thermostat in
// degrees Fahrenheit, whose state was synchronized.
func TestOutcomeOfNearestNumber(t *testing.T) {
	t.Parallel()
	channel := func(capabilities, value string, status domain.ChannelStatus) domain.Channel {
		return domain.Channel{
			Key: "heating_setpoint", Value: json.RawMessage(value), Desired: json.RawMessage(`21`),
			Capabilities: json.RawMessage(capabilities), Status: status,
		}
	}
	r := newTestLive(t, Config{})
	const fahrenheit = `{"resolution":0.5556}`
	for name, tt := range map[string]struct {
		channel  domain.Channel
		certain  bool
		reported string
		want     commandOutcome
	}{
		"nearest":          {channel(fahrenheit, `21.11`, ""), false, `21.11`, outcomeDone},
		"nearest, earlier": {channel(fahrenheit, `18`, ""), true, `21.11`, outcomeDone},
		"not nearest":      {channel(fahrenheit, `21.67`, ""), true, `21.67`, outcomeNotDone},
		"the hub says done": {
			channel(`{}`, `21.11`, domain.ChannelSynchronized), true, `21.11`, outcomeDone,
		},
		"the hub says not done": {
			channel(`{}`, `18`, domain.ChannelDiverged), true, `18`, outcomeNotDone,
		},
		"the hub was not asked": {
			channel(`{}`, `21.11`, domain.ChannelDiverged), false, `21.11`, outcomeOther,
		},
		"no resolution, earlier": {
			channel(`{}`, `19`, domain.ChannelSynchronized), true, `21.11`, outcomeOther,
		},
	} {
		t.Run(name, func(t *testing.T) {
			other := channel(`{"resolution":9}`, `21.11`, domain.ChannelSynchronized)
			hub := r.newHub()
			r.live.Reported = reported{
				{DeviceID: 0, Channel: other, Certain: true},
				{DeviceID: 1, Channel: tt.channel, Certain: tt.certain},
			}
			position, err := r.logs.EndCursor(t.Context(), hub)
			streamstest.Must(t, err)
			r.append(hub, "channel.desired", 1, `{"key":"heating_setpoint","endpoint":0,"value":21}`)
			r.append(
				hub, "channel.observed", 1,
				`{"key":"heating_setpoint","endpoint":0,"value":`+tt.reported+`}`,
			)
			got, _ := r.live.outcomesOf(t.Context(), []domain.CommandRecord{{
				ID: name, HubID: hub, DeviceID: 1, Key: "heating_setpoint",
				Value: json.RawMessage(`21`), Outcome: "accepted", Position: position, At: time.Now(),
			}})
			if got[0] != tt.want {
				t.Errorf("got outcome %q, want %q", got[0], tt.want)
			}
		})
	}
}

// TestAlarmTexts checks the texts of alarms and of events about codes and rules.
func TestAlarmTexts(t *testing.T) {
	t.Parallel()
	for _, event := range []struct{ kind, data, want string }{
		{
			"channel.observed",
			`{"key":"alarm","endpoint":0,"value":{"type":"lock","event":"jammed","active":true}}`,
			"Jammed",
		},
		{
			"channel.observed",
			`{"key":"alarm","value":{"type":"intrusion","event":"beam_cut","active":false}}`,
			"Intrusion: beam cut: ended",
		},
		{"credential.created", `{"slot":3,"label":"Ann"}`, "Access code added: Ann (slot 3)"},
		{"channel.desired", `{"key":"lock","endpoint":0,"value":true}`, "Command: lock"},
		{"channel.observed", `{"key":"switch","endpoint":2,"value":true}`, "Switch 2: Turned on"},
		{"hub.disconnected", `{"reason":"kicked"}`,
			"Hub disconnected: disconnected by the service, for example after a link reset (kicked)"},
		{"door.opened", `{"by":"ann"}`, `{"by":"ann"}`},
	} {
		entry := entryOf(logEvent{
			Type: event.kind, DeviceID: new(int64(1)), Data: json.RawMessage(event.data),
		}, nil)
		if got := entry.Text; got != event.want {
			t.Errorf("%s %s: got %q, want %q", event.kind, event.data, got, event.want)
		}
	}
}
