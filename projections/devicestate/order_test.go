package devicestate_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"hubcloud/domain"
	"hubcloud/projections/devicestate"
)

// TestHubsOrder folds reads that tell the last event that they take into account: the order of the
// hub's own numbers counts, wherever the read stands in the log, and whatever the hub's clock
// shows.
func TestHubsOrder(t *testing.T) {
	t.Parallel()
	const observed, read = "synchronized event", "synchronized read"
	on, off := channelData("switch", "true"), channelData("switch", "false")
	known := `certain=true | 1 "device 1" available=true certain=true `
	for name, tc := range map[string]struct {
		log  *log
		want string
	}{
		"an event in the read, before it": {
			newLog().numbered(7, "channel.observed", 1, off).answered(t, 0, 7, device(1, "true", 0)),
			known + "switch=true " + read,
		},
		"an event after the read, before it in the log": {
			newLog().numbered(7, "channel.observed", 1, off).answered(t, 1, 6, device(1, "true", 0)),
			known + "switch=false " + observed,
		},
		"an event after the read": {
			newLog().answered(t, 0, 6, device(1, "true", 0)).
				numbered(7, "channel.observed", 1, off),
			known + "switch=false " + observed,
		},
		"an event in the read, after it in the log": {
			newLog().answered(t, 0, 7, device(1, "true", 0)).
				numbered(7, "channel.observed", 1, off),
			known + "switch=true " + read,
		},
		"the first event after a read without any": {
			newLog().answered(t, 0, 0, device(1, "true", 0)).
				numbered(1, "channel.observed", 1, off),
			known + "switch=false " + observed,
		},
		"a skip in the read": {
			newLog().answered(t, 0, 7, device(1, "true", 0)).
				numbered(7, "hub.events_skipped", 0, `{"from":3,"to":7}`),
			known + "switch=true " + read,
		},
		"a skip after the read": {
			newLog().answered(t, 0, 6, device(1, "true", 0)).
				numbered(7, "hub.events_skipped", 0, `{"from":3,"to":7}`),
			`certain=false | 1 "device 1" available=true certain=true switch=true ` + read,
		},
		"a skip while the hub was asked, in the read": {
			newLog().numbered(6, "channel.observed", 1, on).
				numbered(7, "hub.events_skipped", 0, `{"from":7,"to":7}`).
				answered(t, 1, 7, device(1, "true", 0)),
			known + "switch=true " + read,
		},
		"a device that was added while the hub was asked, in the read": {
			newLog().numbered(6, "channel.observed", 1, on).
				numbered(7, "device.added", 1, `{"name":"new"}`).
				answered(t, 1, 7, device(1, "true", 0)),
			known + "switch=true " + read,
		},
		"a device that has left, with its last report after the read in the log": {
			newLog().answered(t, 0, 7).numbered(6, "channel.observed", 1, off).
				numbered(7, "device.forgotten", 1, `{"name":""}`),
			"certain=true",
		},
		"smoke in the read, after it in the log": {
			newLog().answered(t, 0, 8, sensor("false")).
				numbered(7, "channel.observed", 1, channelData("smoke", "true")),
			known + "smoke=true " + observed,
		},
		"smoke in the read, and its end": {
			newLog().answered(t, 0, 8, sensor("false")).
				numbered(7, "channel.observed", 1, channelData("smoke", "true")).
				numbered(8, "channel.observed", 1, channelData("smoke", "false")),
			known + "smoke=false " + observed,
		},
		"a hub that numbers anew": {
			newLog().answered(t, 0, 900, device(1, "true", 0)).answered(t, 1, 2, device(1, "false", 0)).
				numbered(3, "channel.observed", 1, on),
			known + "switch=true " + observed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := show(tc.log.fold(t)); got != tc.want {
				t.Errorf("state after %d entries:\n got %s\nwant %s", len(tc.log.entries), got, tc.want)
			}
		})
	}
}

// Regression: a new hub stayed in doubt although it was read completely, if its first event reached
// the log while it was asked.
func TestFirstEventDuringARead(t *testing.T) {
	t.Parallel()
	h := newLog().event("hub.connected", 0, 0, `{}`).read(t, 0, device(1, "true", 0)).fold(t)
	if !h.Certain() {
		t.Errorf("after a complete read: %s, want certain", show(h))
	}
	// What the log had before its first entry that is left is not known.
	l := newLog().observed(1, "true").observed(1, "true").read(t, 0, device(1, "true", 0))
	if h := foldAll(t, l.entries[1:]); h.Certain() {
		t.Errorf("a log without its beginning: %s, want uncertain", show(h))
	}
}

// setpoint returns device 1 with a setpoint, as its hub answers it.
func setpoint(capabilities string) devicestate.ReadDevice {
	d := device(1, "20", 0)
	d.Channels[0].Key, d.Channels[0].Kind = "heating_setpoint", "heating_setpoint"
	d.Channels[0].Capabilities = json.RawMessage(capabilities)
	return d
}

// Regression: the state of a thermostat in whole degrees Fahrenheit was diverged, and that of a
// command that its hub had abandoned pending, both certainly, while the hub said otherwise.
func TestStatusIsTheHubs(t *testing.T) {
	t.Parallel()
	const fahrenheit = `{"min":5,"max":30,"resolution":0.5556}`
	data := func(value string) string { return channelData("heating_setpoint", value) }
	status := func(text string) string {
		return fmt.Sprintf(`{"key":"heating_setpoint","endpoint":0,"status":%q}`, text)
	}
	for name, tc := range map[string]struct {
		capabilities string
		events       [][2]string // types and data
		want         domain.ChannelStatus
		unsure       bool
	}{
		"the nearest number": {
			fahrenheit, [][2]string{{"channel.observed", data("21.11")}},
			domain.ChannelSynchronized, false,
		},
		"the next number": {
			fahrenheit, [][2]string{{"channel.observed", data("21.67")}},
			domain.ChannelDiverged, false,
		},
		"the same number": {
			`{}`, [][2]string{{"channel.observed", data("21.0")}}, domain.ChannelSynchronized, false,
		},
		"another number without a resolution": {
			`{}`, [][2]string{{"channel.observed", data("21.11")}}, domain.ChannelDiverged, true,
		},
		"a resolution that is none": {
			`{"resolution":"fine"}`, [][2]string{{"channel.observed", data("21.11")}},
			domain.ChannelDiverged, true,
		},
		"the hub tells the status of another number": {
			`{}`,
			[][2]string{
				{"channel.observed", data("21.11")}, {"channel.status", status("synchronized")},
			},
			domain.ChannelSynchronized, false,
		},
		"an abandoned command": {
			`{}`, [][2]string{{"channel.status", status("failed")}}, domain.ChannelFailed, false,
		},
		"a report after an abandoned command": {
			fahrenheit,
			[][2]string{{"channel.status", status("failed")}, {"channel.observed", data("21")}},
			domain.ChannelSynchronized, false,
		},
		"no status of the contract": {
			`{}`, [][2]string{{"channel.status", status("done")}, {"channel.status", `{"x":1}`}},
			domain.ChannelPending, false,
		},
	} {
		l := newLog().read(t, 0, setpoint(tc.capabilities)).
			event("channel.desired", 1, 0, data("21"))
		for _, e := range tc.events {
			l.event(e[0], 1, 0, e[1])
		}
		h := l.fold(t)
		c := h.Device(1).Channel("heating_setpoint", 0)
		if c.Status != tc.want || c.Unsure != tc.unsure || !h.Certain() {
			t.Errorf("%s: %s, unsure %t, certain %t; want %s, %t, true",
				name, c.Status, c.Unsure, h.Certain(), tc.want, tc.unsure)
		}
		l.read(t, uint64(len(l.entries)), setpoint(tc.capabilities))
		if c := l.fold(t).Device(1).Channel("heating_setpoint", 0); c.Unsure ||
			c.Status != domain.ChannelSynchronized {
			t.Errorf("%s, after a read: %s, unsure %t", name, c.Status, c.Unsure)
		}
	}
}
