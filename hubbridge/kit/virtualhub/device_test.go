package virtualhub

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/kit/hub"
	"hubcloud/streams/streamstest"
)

var (
	start   = time.Date(2026, 1, 2, 3, 4, 5, 123456789, time.UTC)
	healthy = surroundings{Radio: true}
)

func testDevice(t *testing.T, spec DeviceSpec) *device {
	t.Helper()
	d, err := newDevice(1, spec, 42, start)
	streamstest.Must(t, err)
	return d
}

// TestDemoHasEveryKey: the devices of the demo have a channel of every key of the API contract.
func TestDemoHasEveryKey(t *testing.T) {
	t.Parallel()
	missing := slices.Collect(maps.Keys(keys))
	for _, spec := range DemoDevices() {
		for _, c := range testDevice(t, spec).Channels {
			missing = slices.DeleteFunc(missing, func(key string) bool { return key == c.Key })
		}
	}
	if len(missing) > 0 {
		t.Errorf("no device has the channels %v", missing)
	}
	if len(keys) != 33 {
		t.Errorf("%d keys, want the 33 of the API contract", len(keys))
	}
}

// TestValues: which values commands accept, and the messages of those that are rejected.
func TestValues(t *testing.T) {
	t.Parallel()
	devices := map[string]*device{}
	for _, spec := range DemoDevices() {
		devices[spec.Kind] = testDevice(t, spec)
	}
	for _, tc := range []struct {
		kind, channel string
		value         string
		rejection     string // "" if accepted
	}{
		{"garage_door", "barrier", `true`, ""},
		{"garage_door", "barrier", `1`, "value of barrier must be true or false"},
		{"garage_door", "barrier", `null`, "value of barrier must be true or false"},
		{"garage_door", "barrier", ``, "value of barrier must be true or false"},
		{"switch", "switch/2", `false`, ""},
		{"switch", "switch/3", `false`, "device 1 has no channel switch at endpoint 3"},
		{"switch", "switch", `false`, "device 1 has no channel switch"},
		{"dimmer", "level", `0`, ""},
		{"dimmer", "level", `99`, ""},
		{"dimmer", "level", `5.0e1`, ""},
		{"dimmer", "level", `100`, "value of level must be an integer from 0 to 99"},
		{"dimmer", "level", `-1`, "value of level must be an integer from 0 to 99"},
		{"dimmer", "level", `1.5`, "value of level must be an integer from 0 to 99"},
		{"dimmer", "level", `"50"`, "value of level must be an integer from 0 to 99"},
		{"shade", "position", `true`, "value of position must be an integer from 0 to 99"},
		{"thermostat", "heating_setpoint", `21.35`, ""},
		{"thermostat", "heating_setpoint", `4.9`, "value of heating_setpoint must be from 5 to 35"},
		{
			"thermostat", "heating_setpoint", `35.01`,
			"value of heating_setpoint must be from 5 to 35",
		},
		{"thermostat", "heating_setpoint", `"warm"`, "value of heating_setpoint must be a number"},
		{"thermostat", "mode", `"eco"`, ""},
		{
			"thermostat", "mode", `"party"`,
			"value of mode must be one of off, heat, cool, auto, eco",
		},
		{"thermostat", "mode", `true`, "value of mode must be a string that is not empty"},
		{"thermostat", "temperature", `20`, "channel temperature is read-only"},
		{"color_bulb", "color", `{"red":1,"green":2,"blue":3}`, ""},
		{"color_bulb", "color", `{"red":1,"green":2,"blue":3,"warm_white":255}`, ""},
		{
			"color_bulb", "color", `{"red":1,"green":2}`,
			"blue of color must be an integer from 0 to 255",
		},
		{
			"color_bulb", "color", `{"red":256,"green":2,"blue":3}`,
			"red of color must be an integer from 0 to 255",
		},
		{
			"color_bulb", "color", `{"Red":1,"green":2,"blue":3}`,
			`color has no component "Red": components are red, green, blue and warm_white`,
		},
		{
			"color_bulb", "color", `[1,2,3]`,
			"value of color must be an object of red, green, blue and optionally warm_white",
		},
		{"outlet", "local_protection", `true`, ""},
		{"keypad", "scene", `{"scene":1}`, "channel scene is read-only"},
		{"outlet", "lock", `true`, "device 1 has no channel lock"},
	} {
		ref, err := parseRef(tc.channel)
		streamstest.Must(t, err)
		_, err = devices[tc.kind].Check(ref, json.RawMessage(tc.value))
		var rejection *hub.Error
		switch {
		case tc.rejection == "" && err != nil:
			t.Errorf("Check(%s, %s) = %v, want no error", tc.channel, tc.value, err)
		case tc.rejection != "" && (!errors.As(err, &rejection) || rejection.Message != tc.rejection):
			t.Errorf("Check(%s, %s) = %v, want %s", tc.channel, tc.value, err, tc.rejection)
		}
	}
}

// run runs a command until its outcome and returns the observations.
func run(t *testing.T, d *device, ref ChannelRef, value string, s surroundings) []observation {
	t.Helper()
	v, err := d.Check(ref, json.RawMessage(value))
	streamstest.Must(t, err)
	now := start.Add(time.Hour)
	answer := d.Command(ref, v, now)
	if answer.Status != domain.ChannelPending || answer.Key != ref.Key ||
		answer.Endpoint != ref.Endpoint || answer.Desired != v {
		t.Fatalf("Command() = %+v, want pending and the desired value", answer)
	}
	if observed, changed := d.Advance(now, s); len(observed) > 0 || changed {
		t.Fatalf("outcome before the latency: %v", observed)
	}
	observed, changed := d.Advance(d.Due(s), s)
	if !changed {
		t.Fatal("no outcome when due")
	}
	return observed
}

func quiet() surroundings { return surroundings{Radio: true, Quiet: true} }

func TestCommandOutcomes(t *testing.T) {
	t.Parallel()
	lock := testDevice(t, DeviceSpec{Kind: "lock"})
	if observed := run(t, lock, ChannelRef{Key: "lock"}, "false", quiet()); !reflect.DeepEqual(
		observed, []observation{{ChannelRef: ChannelRef{Key: "lock"}, Value: false}},
	) {
		t.Errorf("unlock: %v", observed)
	}
	if c := lock.Channel(ChannelRef{Key: "lock"}); c.Status != domain.ChannelSynchronized || c.Value != false {
		t.Errorf("after unlock: %+v", c.ChannelState)
	}

	lock.Jammed = true
	observed := run(t, lock, ChannelRef{Key: "lock"}, "true", quiet())
	if len(observed) != 2 || observed[0] != (observation{ChannelRef: ChannelRef{Key: "lock"}, Value: false}) ||
		observed[1].Key != "alarm" {
		t.Errorf("jammed: %v", observed)
	}
	if c := lock.Channel(ChannelRef{Key: "lock"}); c.Status != domain.ChannelDiverged || c.Value != false ||
		c.Desired != true {
		t.Errorf("after a jam: %+v", c.ChannelState)
	}

	// The hub gives up if its radio is down or the device is out of reach.
	for name, s := range map[string]surroundings{"radio": {Quiet: true}, "reach": quiet()} {
		lock := testDevice(t, DeviceSpec{Kind: "lock"})
		lock.Available = name != "reach"
		want := []observation{{ChannelRef: ChannelRef{Key: "lock"}, Failed: true}}
		if got := run(t, lock, ChannelRef{Key: "lock"}, "false", s); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want that the command has failed", name, got)
		}
		if c := lock.Channel(ChannelRef{Key: "lock"}); c.Status != domain.ChannelFailed || c.Value != true {
			t.Errorf("%s: %+v", name, c.ChannelState)
		}
	}
}

// TestDemoIsAlive: the devices of the demo report every few seconds.
func TestDemoIsAlive(t *testing.T) {
	t.Parallel()
	var devices []*device
	for i, spec := range DemoDevices() {
		d, err := newDevice(int64(i+1), spec, 7, start)
		streamstest.Must(t, err)
		devices = append(devices, d)
	}
	var last, longest time.Duration
	for at := time.Duration(0); at < 10*time.Minute; at += 100 * time.Millisecond {
		for _, d := range devices {
			if observed, _ := d.Advance(start.Add(at), healthy); len(observed) > 0 {
				longest, last = max(longest, at-last), at
			}
		}
	}
	if longest > 4*time.Second {
		t.Errorf("no observation for %v, want one within 4s", longest)
	}
}

// TestSnapshot: a restored device equals the original, pending commands included.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	for _, spec := range DemoDevices() {
		d := testDevice(t, spec)
		for range 5 {
			d.Advance(start.Add(time.Minute), healthy)
		}
		for _, c := range d.Channels {
			if keys[c.Key].writable && c.Value != nil {
				d.Command(c.ChannelRef, c.Value, start)
			}
		}
		raw := encode(d.Snapshot())
		var s deviceSnapshot
		streamstest.Must(t, json.Unmarshal(raw, &s))
		back, err := restoreDevice(s, 42)
		streamstest.Must(t, err)
		if again := encode(back.Snapshot()); string(again) != string(raw) {
			t.Errorf("%s: %s\nwas %s", spec.Kind, again, raw)
		}
		if !reflect.DeepEqual(back.View(), d.View()) {
			t.Errorf("%s: %+v\nwas %+v", spec.Kind, back.View(), d.View())
		}
	}
}

func TestSpecs(t *testing.T) {
	t.Parallel()
	for kind := range kinds {
		if err := checkSpec(DeviceSpec{Kind: kind}); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	for name, spec := range map[string]DeviceSpec{
		"kind missing":        {},
		"kind unknown":        {Kind: "toaster"},
		"gangs of a lock":     {Kind: "lock", Gangs: 2},
		"nine gangs":          {Kind: "switch", Gangs: 9},
		"setpoints of a lock": {Kind: "lock", Min: new(1.0)},
		"min above max":       {Kind: "thermostat", Min: new(40.0)},
		"value of an unknown channel": {
			Kind: "lock", Values: map[string]json.RawMessage{"switch": json.RawMessage("true")},
		},
		"value of another type": {
			Kind: "lock", Values: map[string]json.RawMessage{"lock": json.RawMessage("7")},
		},
		"bad endpoint": {
			Kind: "switch", Gangs: 2,
			Values: map[string]json.RawMessage{"switch/x": json.RawMessage("true")},
		},
	} {
		if checkSpec(spec) == nil {
			t.Errorf("%s: Check returned no error", name)
		}
	}
}

// FuzzCommand: any command is either rejected with a message or accepted and then reported.
func FuzzCommand(f *testing.F) {
	for _, seed := range []string{
		`true`, `50`, `{"red":1,"green":2,"blue":3}`, `"heat"`, `1e308`, `-0`, `null`, `[`,
		`{"red":null}`,
	} {
		f.Add("level", 0, []byte(seed))
		f.Add("color", 0, []byte(seed))
		f.Add("mode", 1, []byte(seed))
	}
	f.Fuzz(func(t *testing.T, key string, endpoint int, value []byte) {
		for _, spec := range DemoDevices() {
			d := testDevice(t, spec)
			ref := ChannelRef{Key: key, Endpoint: endpoint}
			v, err := d.Check(ref, value)
			var rejection *hub.Error
			if err != nil {
				if !errors.As(err, &rejection) || rejection.Message == "" {
					t.Fatalf("%v", err)
				}
				continue
			}
			d.Command(ref, v, start)
			d.Advance(start.Add(time.Hour), quiet())
			if c := d.Channel(ref); c.Status != domain.ChannelSynchronized {
				t.Fatalf("%s %s of a %s: %s", key, value, spec.Kind, c.Status)
			}
			encode(d.Snapshot())
		}
	})
}
