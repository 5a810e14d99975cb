package live_test

import (
	"encoding/json"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/portal/live"
)

// TestOutcomes checks the outcome of each command from what its device reported afterwards.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	const locked, unlocked = `{"key":"lock","endpoint":0,"value":true}`,
		`{"key":"lock","endpoint":0,"value":false}`
	const jam = `{"key":"alarm","endpoint":0,"value":{"type":"lock","event":"jammed","active":true}}`
	for want, reports := range map[live.Outcome][]string{
		live.OutcomeDone:     {unlocked, locked},
		live.OutcomeNotDone:  {unlocked},
		live.OutcomeJammed:   {unlocked, jam},
		live.OutcomePending:  {},
		live.OutcomeNone:     {},
		live.OutcomeReplaced: {"desired"},
	} {
		t.Run(string(want), func(t *testing.T) {
			t.Parallel()
			now := time.Now
			if want == live.OutcomeNone {
				now = func() time.Time { return time.Now().Add(time.Hour) }
			}
			r := newTestLive(t, live.Config{Now: now})
			r.append(hubA, "channel.observed", 1, locked) // before the command
			command := domain.CommandRecord{
				HubID: hubA, DeviceID: 1, Key: "lock", Value: json.RawMessage("true"),
				At: time.Now().Add(-time.Second), Outcome: "accepted",
			}
			r.append(hubA, "channel.desired", 1, locked)
			r.append(hubA, "channel.observed", 2, locked) // another device
			for _, report := range reports {
				if report == "desired" {
					r.append(hubA, "channel.desired", 1, unlocked)
					continue
				}
				r.append(hubA, "channel.observed", 1, report)
			}
			rejected := command
			rejected.Outcome = "hub_offline"
			got, reported := r.live.Outcomes(
				t.Context(), []domain.CommandRecord{command, rejected},
			)
			if got[0] != want || got[1] != live.OutcomeUnknown {
				t.Errorf("got outcomes %q, want %q and none", got, want)
			}
			if still := want == live.OutcomeNotDone || want == live.OutcomeJammed; still !=
				(string(reported[0]) == "false") {
				t.Errorf("got the reported value %q with outcome %q", reported[0], got[0])
			}
		})
	}
}

// TestAlarmTexts checks the texts of alarms and of events about codes and rules.
func TestAlarmTexts(t *testing.T) {
	t.Parallel()
	r := newTestLive(t, live.Config{})
	for _, event := range []struct{ kind, data, want string }{
		{
			"channel.observed",
			`{"key":"alarm","endpoint":0,"value":{"type":"lock","event":"jammed","active":true}}`,
			"Jammed",
		},
		{
			"channel.observed",
			`{"key":"alarm","value":{"event":"keypad_code_accepted","active":true,"user":2}}`,
			"Code accepted (user 2)",
		},
		{
			"channel.observed",
			`{"key":"alarm","value":{"type":"intrusion","event":"beam_cut","active":false}}`,
			"intrusion: beam cut: ended",
		},
		{"credential.created", `{"slot":3,"label":"Ann"}`, "Access code added: Ann (slot 3)"},
		{"rule.created", `{"name":"Night","enabled":true}`, "Rule added: Night"},
		{"rule.fired", `{}`, "Rule ran"},
		{"channel.observed", `{"key":"lock","endpoint":0,"value":false}`, "Unlocked"},
		{"channel.desired", `{"key":"lock","endpoint":0,"value":true}`, "Command: lock"},
		{"channel.observed", `{"key":"switch","endpoint":2,"value":true}`, "Switch 2: Turned on"},
		{"channel.desired", `{"key":"heating_setpoint","value":21.5}`, "Command: Heat to 21.5 °C"},
		{"channel.observed", `{"key":"battery","value":7}`, "Battery 7 %"},
		{"channel.observed", `{"key":"temperature","value":7}`, "Temperature 7"},
		{"hub.disconnected", `{"reason":"kicked"}`,
			"Hub disconnected: disconnected by the service, for example after a link reset (kicked)"},
		{"hub.disconnected", `{"reason":null}`, "Hub disconnected: reason unknown"},
		{"hub.events_skipped", `{"from":3,"to":7}`, "The hub lost events 3 to 7"},
		{
			"hub.log_reset", `{"reason":"factory_reset"}`,
			"The event log begins anew: the hub was reset",
		},
		{"hub.log_reset", `{"reason":"moved"}`, "The event log begins anew: moved"},
		{"hub.log_reset", `{}`, "The event log begins anew: reason unknown"},
		{"device.forgotten", `{"name":"Lamp"}`, "Device removed: Lamp"},
		{"device.forgotten", `{}`, "Device removed"},
		{"door.opened", `{"by":"ann"}`, `{"by":"ann"}`},
	} {
		r.append(hubA, event.kind, 1, event.data)
		page, err := r.live.ReadLog(t.Context(), hubA, live.LogRequest{})
		if err != nil || len(page.Entries) == 0 {
			t.Fatalf("got %+v, %v, want entries", page, err)
		}
		if got := page.Entries[0].Text; got != event.want {
			t.Errorf("%s %s: got %q, want %q", event.kind, event.data, got, event.want)
		}
	}
}
