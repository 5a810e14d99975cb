package attention_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/domain/attention"
)

// said is a report of an alarm channel: `<type>: <event>`, with a ! before it if it is not active.
func said(text string) json.RawMessage {
	text, ended := strings.CutPrefix(text, "!")
	typ, event, _ := strings.Cut(text, ": ")
	value, _ := json.Marshal(map[string]any{"type": typ, "event": event, "active": !ended})
	return value
}

// after returns an alarm channel after reports, a minute after each other.
func after(reports ...json.RawMessage) attention.ChannelState {
	c := attention.ChannelState{Key: "alarm"}
	at := began
	for _, value := range reports {
		at = at.Add(time.Minute)
		c.Value, c.ObservedAt, c.ChangedAt = value, at, at
		c.Logged = domain.LoggedTimes{Observed: at, Changed: at}
		c.Standing = attention.Stand(c.Standing, domain.StandingAlarm{
			Value: value, ObservedAt: at, Logged: c.Logged,
		})
	}
	return c
}

// Regression: smoke was no condition any more once its channel reported anything else.
func TestAlarmsStandUntilTheirEnd(t *testing.T) {
	t.Parallel()
	const smoke, battery = "Smoke Alarm: Smoke detected", "Power Management: Replace battery now"
	for reports, want := range map[string]string{
		smoke:                                                        "alarm smoke",
		smoke + "; System: Heartbeat":                                "alarm smoke",
		smoke + "; Smoke Alarm: Alarm silenced":                      "alarm smoke",
		smoke + "; !Smoke Alarm: Alarm silenced":                     "alarm smoke",
		smoke + "; Access Control: Window/door is open":              "alarm smoke",
		smoke + "; something: unknown":                               "alarm smoke",
		smoke + "; !something: unknown":                              "alarm smoke",
		smoke + "; " + battery:                                       "alarm smoke, warning battery",
		battery + "; " + smoke + "; System: Heartbeat":               "alarm smoke, warning battery",
		smoke + "; " + battery + "; !" + battery:                     "alarm smoke",
		smoke + "; " + battery + "; !" + smoke:                       "warning battery",
		smoke + "; !" + smoke:                                        "",
		smoke + "; !1: 2":                                            "",
		"1: 2; !1: 0":                                                "",
		"1: 2; 1: 0":                                                 "",
		"1: 2; 9: 5":                                                 "alarm smoke",
		smoke + "; !smoke_alarm: smoke_detected":                     "",
		smoke + "; !Smoke Alarm: Smoke detected (location provided)": "",
		smoke + "; Smoke Alarm: cleared":                             "",
		smoke + "; !Smoke Alarm: ":                                   "",
		smoke + "; !Smoke Alarm: some end":                           "",
		smoke + "; Heat Alarm: idle":                                 "alarm smoke",
		smoke + "; !CO Alarm: ":                                      "alarm smoke",
		"smoke: detected; smoke: heartbeat":                          "alarm smoke",
		"smoke: detected; !smoke: detected":                          "",
		"smoke: detected; smoke: idle":                               "",
		// One event ends another.
		"Power Management: AC mains disconnected; Power Management: AC mains re-connected": "",
		"8: 2; 8: 3":             "",
		battery + "; 8: 2; 8: 3": "warning battery",
		"Power Management: Replace battery soon; " + battery + "; !" + battery: "",
		"Access Control: Lock jammed; Access Control: Manual unlock operation": "",
		"Access Control: Lock jammed; Access Control: Window/door is closed":   "alarm jammed",
		"door: held open; door: closed":                                        "",
		// The newest of a kind counts; the others stand too.
		"7: Intrusion; 7: Glass breakage":                     "alarm alarm",
		"7: Intrusion; 7: Glass breakage; !7: Glass breakage": "alarm alarm",
		"7: Intrusion; 7: Glass breakage; !7: ":               "",
	} {
		var values []json.RawMessage
		for text := range strings.SplitSeq(reports, "; ") {
			values = append(values, said(text))
		}
		if got := one(after(values...)); got != want {
			t.Errorf("%s: got %q, want %q", reports, got, want)
		}
	}
	for _, value := range []string{
		`null`, `"x"`, `{"type":"Smoke Alarm","event":"Smoke detected"}`, `{"active":false}`, `{}`,
	} {
		if got := one(after(said(smoke), json.RawMessage(value))); got != "alarm smoke" {
			t.Errorf("smoke, then %s: got %q, want an alarm of smoke", value, got)
		}
	}
}

// An alarm that is reported again is the same occurrence, and another one of its kind is not.
func TestBeginOfAlarmsThatStand(t *testing.T) {
	t.Parallel()
	smoke, beat := said("Smoke Alarm: Smoke detected"), said("System: Heartbeat")
	intrusion, glass := said("Home Security: Intrusion"), said("Home Security: Glass breakage")
	for name, c := range map[string]struct {
		reports []json.RawMessage
		minute  time.Duration
		event   string
	}{
		"again":                 {[]json.RawMessage{smoke, beat, smoke}, 1, "Smoke detected"},
		"another":               {[]json.RawMessage{intrusion, glass}, 2, "Glass breakage"},
		"the other one is over": {[]json.RawMessage{intrusion, glass, said("!7: Glass breakage")}, 1, "Intrusion"},
	} {
		found := attention.Of(attention.HubState{ID: hub, Devices: []attention.DeviceState{
			{ID: 3, Available: true, Channels: []attention.ChannelState{after(c.reports...)}},
		}})
		at := began.Add(c.minute * time.Minute)
		if len(found) != 1 || !found[0].Began.Equal(at) || !found[0].Since.Equal(at) ||
			found[0].Event != c.event || found[0].Key != "alarm" {
			t.Errorf("%s: got %+v, want %s of %s", name, found, c.event, at)
		}
	}
}

// Of more alarms than are kept, the most severe ones are.
func TestAlarmsThatStandAreBounded(t *testing.T) {
	t.Parallel()
	reports := []json.RawMessage{said("Smoke Alarm: Smoke detected")}
	for i := range 20 {
		reports = append(reports, said(fmt.Sprintf("Appliance %d: Fan failure", i)))
	}
	reports = append(reports, said("Water Alarm: Water leak detected"))
	c := after(reports...)
	if len(c.Standing) != attention.MaxStanding {
		t.Errorf("got %d alarms, want %d", len(c.Standing), attention.MaxStanding)
	}
	if got := one(c); got != "alarm smoke, alarm leak, warning fault" {
		t.Errorf("got %q, want smoke, leak and a fault", got)
	}
}
