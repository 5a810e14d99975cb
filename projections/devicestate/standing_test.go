package devicestate_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"hubcloud/projections/devicestate"
	"hubcloud/streams/streamstest"
)

// said returns the data of a report of the channel alarm.
func said(typ, event string, active bool) string {
	return channelData("alarm", alarm(typ, event, active))
}

func alarm(typ, event string, active bool) string {
	return fmt.Sprintf(`{"type":%q,"event":%q,"active":%t,"user":null}`, typ, event, active)
}

// detector returns device 1 with an alarm channel, as its hub answers it.
func detector(value string) devicestate.ReadDevice {
	d := device(1, value, time.Minute)
	d.Channels[0].Key, d.Channels[0].Kind = "alarm", "alarm"
	return d
}

// standing returns the events of the alarms of device 1 that stand, with the seconds after which
// the log got the first report of each.
func standing(t *testing.T, h *devicestate.Hub) string {
	t.Helper()
	var all []string
	if d := h.Device(1); d != nil {
		if c := d.Channel("alarm", 0); c != nil {
			for _, s := range c.Standing {
				var r struct{ Event string }
				streamstest.Must(t, json.Unmarshal(s.Value, &r))
				all = append(all, fmt.Sprint(r.Event, " ", s.Logged.Changed.Sub(start).Seconds()))
			}
		}
	}
	return strings.Join(all, ", ")
}

// Regression: all alarms of a device share one channel, of which only the last report was kept. So
// a heartbeat or a low battery took smoke off the list of what needs attention.
func TestAlarmsStand(t *testing.T) {
	t.Parallel()
	const observed = "channel.observed"
	smoke, smokeEnd := said("Smoke Alarm", "Smoke detected", true), said("Smoke Alarm", "Smoke detected", false)
	beat := said("System", "Heartbeat", true)
	jam := said("lock", "jammed", true)
	locked := channelData("lock", "true")
	for name, tc := range map[string]struct {
		log  *log
		want string
	}{
		"a heartbeat": {
			newLog().numbered(1, observed, 1, smoke).numbered(2, observed, 1, beat), "Smoke detected 1",
		},
		"its end": {
			newLog().numbered(1, observed, 1, smoke).numbered(2, observed, 1, beat).
				numbered(3, observed, 1, smokeEnd), "",
		},
		"a read of another report": {
			newLog().numbered(1, observed, 1, smoke).answered(t, 1, 2, detector(alarm("System", "Heartbeat", true))),
			"Smoke detected 1",
		},
		"a read of its end": {
			newLog().numbered(1, observed, 1, smoke).
				answered(t, 1, 2, detector(alarm("Smoke Alarm", "idle", false))), "",
		},
		"a read that has no value": {
			newLog().numbered(1, observed, 1, smoke).answered(t, 1, 2, detector("null")), "Smoke detected 1",
		},
		"a read of an alarm": {
			newLog().answered(t, 0, 2, detector(alarm("Smoke Alarm", "Smoke detected", true))).
				numbered(3, observed, 1, beat), "Smoke detected 1",
		},
		"its end is in a read of another report, and follows in the log": {
			newLog().numbered(1, observed, 1, smoke).
				answered(t, 1, 3, detector(alarm("System", "Heartbeat", true))).
				numbered(2, observed, 1, smokeEnd), "",
		},
		"its end is in a read of the same alarm, which has begun again": {
			newLog().numbered(1, observed, 1, smoke).
				answered(t, 1, 3, detector(alarm("Smoke Alarm", "Smoke detected", true))).
				numbered(2, observed, 1, smokeEnd), "Smoke detected 2",
		},
		"a read without the device": {
			newLog().numbered(1, observed, 1, smoke).answered(t, 1, 2), "",
		},
		"a device that was forgotten": {
			newLog().numbered(1, observed, 1, smoke).numbered(2, "device.forgotten", 1, `{}`), "",
		},
		"a device that was forgotten and is in a read": {
			newLog().numbered(1, observed, 1, smoke).answered(t, 1, 3, detector("null")).
				numbered(2, "device.forgotten", 1, `{}`), "",
		},
		"a channel that was removed": {
			newLog().numbered(1, observed, 1, smoke).numbered(2, "device.updated", 1,
				`{"name":"x","removed_channels":[{"key":"alarm","endpoint":0}]}`), "",
		},
		"a channel that was removed and is in a read": {
			newLog().numbered(1, observed, 1, smoke).answered(t, 1, 3, detector("null")).
				numbered(2, "device.updated", 1,
					`{"name":"x","removed_channels":[{"key":"alarm","endpoint":0}]}`), "",
		},
		"a jam, and a heartbeat": {
			newLog().numbered(1, observed, 1, locked).numbered(2, observed, 1, jam).
				numbered(3, observed, 1, beat), "jammed 2",
		},
		"a jam until the lock has moved": {
			newLog().numbered(1, observed, 1, channelData("lock", "false")).
				numbered(2, observed, 1, jam).numbered(3, observed, 1, beat).
				numbered(4, observed, 1, locked), "",
		},
		"a jam again after the lock has moved": {
			newLog().numbered(1, observed, 1, channelData("lock", "false")).
				numbered(2, observed, 1, jam).numbered(3, observed, 1, locked).
				numbered(4, observed, 1, jam), "jammed 4",
		},
		"another epoch": {
			func() *log {
				l := newLog().numbered(1, observed, 1, smoke)
				l.epoch = second
				return l.numbered(1, observed, 1, beat)
			}(), "",
		},
	} {
		h := tc.log.fold(t)
		if got := standing(t, h); got != tc.want {
			t.Errorf("%s: got %q standing, want %q", name, got, tc.want)
		}
		snapshot, err := h.MarshalSnapshot()
		streamstest.Must(t, err)
		at := len(tc.log.entries)
		tc.log.state(snapshot)
		if got := standing(t, foldAll(t, tc.log.entries[at:])); got != tc.want {
			t.Errorf("%s, from a snapshot: got %q standing, want %q", name, got, tc.want)
		}
	}
}
