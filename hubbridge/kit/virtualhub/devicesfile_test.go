package virtualhub

import (
	"strings"
	"testing"
	"time"
)

func TestDevicesFile(t *testing.T) {
	t.Parallel()
	f, err := parseDevicesFile([]byte(`{
	  "devices": [
	    {"kind": "lock", "name": "Front door"},
	    {"kind": "thermostat", "name": "Hall", "min": 7, "max": 30, "values": {"temperature": 18.5}},
	    {"kind": "switch", "gangs": 2, "values": {"switch/2": true}, "latency": "1.5s"}
	  ],
	  "joinable": [],
	  "faults": {"jammed": [1], "late_answers": "3s"}
	}`))
	if err != nil || len(f.Devices) != 3 || f.Joinable == nil ||
		time.Duration(f.Devices[2].Latency) != 1500*time.Millisecond {
		t.Errorf("%+v, %v", f, err)
	}
	for text, words := range map[string]string{
		`{"devices": [{"kind": "lock"}, {"kind": "toaster"}]}`: `devices[1]: kind: is "toaster"`,
		`{"joinable": [{"kind": "lock", "gangs": 2}]}`:         `joinable[0]: gangs: is for a switch`,
		`{"device": []}`: `unknown field "device"`,
		`{} {}`:          `must be one JSON object`,
		`{"devices": [{"kind":"lock","latency":3}]}`: `duration`,
		`{"faults": {"late_answers": "soon"}}`:       `duration`,
		`[]`:                                         `array`,
	} {
		if _, err := parseDevicesFile([]byte(text)); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
