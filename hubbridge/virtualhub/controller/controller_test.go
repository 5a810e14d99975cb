package controller

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"hubcloud/hubbridge/protocol"
	"hubcloud/hubbridge/virtualhub/device"
	"hubcloud/streams/streamstest"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func newTestController(t testing.TB, dir string) *Controller {
	t.Helper()
	c, err := New(Config{
		HubID: "hub-7k2m-q4xd-93ta", Quiet: true, Dir: dir, Logger: streamstest.Logger(),
	}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func (c *Controller) ask(method, params string, now time.Time) protocol.Response {
	return c.HandleRequest(
		protocol.Request{ID: "1", Token: "t", Method: method, Params: json.RawMessage(params)}, now,
	)
}

const unlock = `{"command_id":"c1","device_id":1,"key":"lock","endpoint":0,"value":false}`

// TestCommandMemory: a command id is remembered for 24 hours, and its journal entry is deleted
// then.
func TestCommandMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := newTestController(t, dir)
	first := c.ask(protocol.MethodChannelsCommand, unlock, noon)
	if first.Error != nil {
		t.Fatal(first.Error)
	}
	c.Advance(noon.Add(time.Hour))
	again := c.ask(protocol.MethodChannelsCommand, unlock, noon.Add(commandMemory-time.Second))
	if string(again.Result) != string(first.Result) {
		t.Errorf("second answer %s, want the first, %s", again.Result, first.Result)
	}
	c.Advance(noon.Add(commandMemory))
	if n := len(c.journal.Entries(entryCommand)); n != 0 || len(c.commands) != 0 {
		t.Errorf("%d entries, %d commands after 24 hours, want none", n, len(c.commands))
	}
	if late := c.ask(protocol.MethodChannelsCommand, unlock, noon.Add(commandMemory)); string(
		late.Result,
	) == string(first.Result) {
		t.Error("command id remembered for more than 24 hours")
	}
}

// TestCommandMemoryOverRestart: answers, rejections included, are remembered over a restart with a
// directory; hub_unavailable is not.
func TestCommandMemoryOverRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ask := func(c *Controller, id, value string, now time.Time) string {
		params := fmt.Sprintf(
			`{"command_id":%q,"device_id":1,"key":"lock","endpoint":0,"value":%s}`, id, value,
		)
		return string(mustJSON(c.ask(protocol.MethodChannelsCommand, params, now)))
	}
	c := newTestController(t, dir)
	accepted, rejected := ask(c, "accepted", "false", noon), ask(c, "rejected", "7", noon)
	c.SetFaults(func(f *Faults) { f.RadioDown = true })
	unavailable := ask(c, "unavailable", "false", noon)
	if !strings.Contains(accepted, "pending") || !strings.Contains(rejected, "invalid_request") ||
		!strings.Contains(unavailable, "hub_unavailable") {
		t.Fatalf("%s\n%s\n%s", accepted, rejected, unavailable)
	}
	restart := func() {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		c = newTestController(t, dir)
	}
	restart()
	last := noon.Add(commandMemory - time.Second)
	// Only the id counts: the values differ.
	if got := ask(c, "accepted", "true", last); got != accepted {
		t.Errorf("after a restart: %s, want the first answer, %s", got, accepted)
	}
	if got := ask(c, "rejected", "true", last); got != rejected {
		t.Errorf("after a restart: %s, want the first answer, %s", got, rejected)
	}
	if got := ask(c, "unavailable", "false", last); !strings.Contains(got, "pending") {
		t.Errorf("command that was unavailable: %s, want it to run", got)
	}
	restart()
	if got := ask(c, "rejected", "true", noon.Add(commandMemory)); !strings.Contains(
		got, "pending",
	) {
		t.Errorf("after 24 hours: %s, want it to run", got)
	}
}

// TestWindowDuration: a window is open for 120 s, and opening it again starts over.
func TestWindowDuration(t *testing.T) {
	t.Parallel()
	c := newTestController(t, "")
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

// TestFullDisk: a command that cannot be stored is not run and not remembered.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	c := newTestController(t, t.TempDir())
	if err := c.journal.Close(); err != nil {
		t.Fatal(err)
	}
	before := c.ask(protocol.MethodDevicesGet, `{"device_id":1}`, noon)
	if r := c.ask(protocol.MethodChannelsCommand, unlock, noon); r.Error == nil ||
		r.Error.Type != "storage" {
		t.Errorf("%s %+v", r.Result, r.Error)
	}
	if after := c.ask(protocol.MethodDevicesGet, `{"device_id":1}`, noon); string(
		after.Result,
	) != string(before.Result) ||
		len(c.commands) != 0 {
		t.Errorf("%s\nwas %s", after.Result, before.Result)
	}
}
