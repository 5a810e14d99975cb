package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"hubcloud/hubbridge/hub"
	"hubcloud/hubbridge/protocol"
	"hubcloud/hubbridge/virtualhub/device"
	"hubcloud/streams/streamstest"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// testHub is a controller with its engine and a clock that the test sets.
type testHub struct {
	*Controller
	engine *hub.Engine
	now    time.Time
}

func newTestHub(t testing.TB, dir string) *testHub {
	t.Helper()
	const id = "hub-7k2m-q4xd-93ta"
	engine, err := hub.NewEngine(
		hub.EngineConfig{ID: id, Dir: dir, Logger: streamstest.Logger()}, func() {},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	h := &testHub{engine: engine, now: noon}
	h.Controller, err = New(Config{
		HubID: id, Quiet: true, Durable: dir != "", Logger: streamstest.Logger(),
		Now: func() time.Time { return h.now },
	}, engine, func() {})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *testHub) ask(method, params string, now time.Time) protocol.Response {
	h.now = now
	return h.engine.HandleRequest(
		context.Background(), h,
		protocol.Request{ID: "1", Token: "t", Method: method, Params: json.RawMessage(params)}, now,
	)
}

const unlock = `{"command_id":"c1","device_id":1,"key":"lock","endpoint":0,"value":false}`

// TestWindowDuration: a window is open for 120 s, and opening it again starts over.
func TestWindowDuration(t *testing.T) {
	t.Parallel()
	c := newTestHub(t, "")
	lock := device.Spec{Kind: "lock"}
	c.ask(protocol.MethodPairingOpen, `{}`, noon)
	if due := c.Advance(noon.Add(time.Second)); !due.Equal(noon.Add(120 * time.Second)) {
		t.Errorf("Advance() = %v, want the end of the window", due)
	}
	if _, err := c.Join(lock, noon.Add(120*time.Second)); !errors.Is(err, ErrNoWindow) {
		t.Errorf("Join() after 120 s = %v, want ErrNoWindow", err)
	}
	c.ask(protocol.MethodPairingOpen, `{}`, noon)
	c.ask(protocol.MethodPairingOpen, `{}`, noon.Add(100*time.Second))
	if _, err := c.Join(lock, noon.Add(219*time.Second)); err != nil {
		t.Error(err)
	}
}

func TestFaultsSet(t *testing.T) {
	t.Parallel()
	var f Faults
	for _, text := range []string{
		"jammed=1,2", "late_answers=3s", "radio_down", "clock_unknown=false", "cut_every=1m",
	} {
		if err := f.Set(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	want := Faults{Jammed: []int64{1, 2}, RadioDown: true}
	_ = want.Set("late_answers=3s")
	_ = want.Set("cut_every=60s")
	if fmt.Sprint(f) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", f, want)
	}
	for _, text := range []string{
		"", "on_fire", "jammed", "jammed=lock", "jammed=1]", "late_answers", "late_answers=-1s",
		"radio_down=perhaps", `late_answers=1s","heedless":true,"x":"`,
	} {
		before := fmt.Sprint(f)
		if err := f.Set(text); err == nil || fmt.Sprint(f) != before {
			t.Errorf("Set(%q) = %v, faults %v; want an error and no change", text, err, f)
		}
	}
}

// The error of an unknown fault lists every fault, and only those.
func TestFaultNames(t *testing.T) {
	t.Parallel()
	fields := reflect.TypeFor[Faults]()
	var tags []string
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
		tags = append(tags, name)
		var f Faults
		if err := f.Set(name + "="); err != nil && strings.Contains(err.Error(), "is not one of") {
			t.Errorf("Set(%q): %v", name, err)
		}
	}
	slices.Sort(tags)
	if names := slices.Sorted(slices.Values(faultNames)); !slices.Equal(names, tags) {
		t.Errorf("faultNames = %q, want %q", names, tags)
	}
}

// TestFullDisk: a command that cannot be stored is not run.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	c := newTestHub(t, t.TempDir())
	if err := c.engine.Close(); err != nil {
		t.Fatal(err)
	}
	before := c.ask(protocol.MethodDevicesGet, `{"device_id":1}`, noon)
	if r := c.ask(protocol.MethodChannelsCommand, unlock, noon); r.Error == nil ||
		r.Error.Type != "storage" {
		t.Errorf("%s %+v", r.Result, r.Error)
	}
	if after := c.ask(protocol.MethodDevicesGet, `{"device_id":1}`, noon); string(
		after.Result,
	) != string(before.Result) {
		t.Errorf("%s\nwas %s", after.Result, before.Result)
	}
}
