package virtualhub

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

	"hubcloud/hubbridge/kit/hub"
	"hubcloud/hubbridge/protocol"
	"hubcloud/streams/streamstest"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// testHub is a controller with its hub and a clock that the test sets.
type testHub struct {
	*controller
	hub  *hub.Hub
	time time.Time
}

func newTestHub(t testing.TB, dir string) *testHub {
	t.Helper()
	virtual, err := New(Config{
		Config: hub.Config{
			EnrollURL: "-", Serial: "HUB-7K2M-Q4XD-93TA", Secret: "-", Dir: dir,
			Logger: streamstest.Logger(),
		},
		Quiet: true,
	})
	streamstest.Must(t, err)
	t.Cleanup(func() { _ = virtual.Close() })
	h := &testHub{controller: virtual.controller, hub: virtual.Hub, time: noon}
	h.now = func() time.Time { return h.time }
	return h
}

func (h *testHub) ask(method, params string, now time.Time) protocol.Response {
	h.time = now
	return h.hub.Engine().HandleRequest(
		context.Background(), h,
		protocol.Request{ID: "1", Token: "t", Method: method, Params: json.RawMessage(params)}, now,
	)
}

const unlock = `{"command_id":"c1","device_id":1,"key":"lock","endpoint":0,"value":false}`

// TestWindowDuration: a window is open for 120 s, and opening it again starts over.
func TestWindowDuration(t *testing.T) {
	t.Parallel()
	c := newTestHub(t, "")
	lock := DeviceSpec{Kind: "lock"}
	c.ask(protocol.MethodPairingOpen, `{}`, noon)
	if due := c.advance(noon.Add(time.Second)); !due.Equal(noon.Add(120 * time.Second)) {
		t.Errorf("advance() = %v, want the end of the window", due)
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

// TestSmartStart: a QR code lets a device join after the window, once; closing the window forgets
// it.
func TestSmartStart(t *testing.T) {
	t.Parallel()
	c := newTestHub(t, "")
	late := noon.Add(time.Hour)
	open := func() {
		c.ask(
			protocol.MethodPairingOpen, `{"setup_code":"90`+strings.Repeat("1", 60)+`"}`, noon,
		)
	}
	open()
	id, err := c.Join(DeviceSpec{Kind: "lock"}, late)
	streamstest.Must(t, err)
	if r := c.ask(protocol.MethodChannelsCommand, fmt.Sprintf(
		`{"command_id":"c1","device_id":%d,"key":"lock","endpoint":0,"value":false}`, id,
	), late); r.Error != nil {
		t.Errorf("the lock has not joined securely: %v", r.Error)
	}
	if _, err := c.Join(DeviceSpec{Kind: "lock"}, late); !errors.Is(err, ErrNoWindow) {
		t.Errorf("second Join() = %v, want ErrNoWindow", err)
	}
	open()
	c.ask(protocol.MethodPairingClose, `{}`, noon)
	if _, err := c.Join(DeviceSpec{Kind: "lock"}, late); !errors.Is(err, ErrNoWindow) {
		t.Errorf("Join() after pairing.close = %v, want ErrNoWindow", err)
	}
}

// TestInterview: a device that has just joined has no channels, until device.updated.
func TestInterview(t *testing.T) {
	t.Parallel()
	c := newTestHub(t, "")
	c.ask(protocol.MethodPairingOpen, `{}`, noon)
	id, err := c.Join(DeviceSpec{Kind: "lock", Interview: Duration(time.Minute)}, noon)
	streamstest.Must(t, err)
	newest := c.hub.Status().Newest
	if due := c.advance(noon); !due.Equal(noon.Add(time.Minute)) {
		t.Errorf("advance() = %v, want the end of the interview", due)
	}
	if d, _ := c.View(id); len(d.Channels) > 0 {
		t.Errorf("channels %v, want none while the device is interviewed", d.Channels)
	}
	c.advance(noon.Add(time.Minute))
	d, _ := c.View(id)
	if events := c.hub.Status().Newest - newest; len(d.Channels) == 0 || events < 2 {
		t.Errorf("%d channels and %d events after the interview", len(d.Channels), events)
	}
}

// TestSleepingDevice: a command waits until the device wakes.
func TestSleepingDevice(t *testing.T) {
	t.Parallel()
	c := newTestHub(t, "")
	c.ask(protocol.MethodPairingOpen, `{"setup_code":"12345"}`, noon)
	id, err := c.Join(DeviceSpec{Kind: "lock", WakesEvery: Duration(time.Hour)}, noon)
	streamstest.Must(t, err)
	var answer struct{ Device map[string]any }
	r := c.ask(protocol.MethodDevicesGet, fmt.Sprintf(`{"device_id":%d}`, id), noon)
	if err := json.Unmarshal(r.Result, &answer); err != nil || answer.Device["wakes_at"] == nil {
		t.Errorf("devices.get = %s, want wakes_at", r.Result)
	}
	asked := noon.Add(time.Minute)
	if r := c.ask(protocol.MethodChannelsCommand, fmt.Sprintf(
		`{"command_id":"c1","device_id":%d,"key":"lock","endpoint":0,"value":false}`, id,
	), asked); r.Error != nil {
		t.Fatal(r.Error)
	}
	value := func(now time.Time) any {
		c.advance(now)
		d, _ := c.View(id)
		return d.Channels[0].Value
	}
	if v := value(noon.Add(59 * time.Minute)); v != true {
		t.Errorf("the lock is %v while it sleeps, want true", v)
	}
	if v := value(noon.Add(61 * time.Minute)); v != false {
		t.Errorf("the lock is %v after it woke, want false", v)
	}
}

// TestForgetWithoutRadio: a hub that cannot tell whether a device is gone keeps it.
func TestForgetWithoutRadio(t *testing.T) {
	t.Parallel()
	c := newTestHub(t, "")
	streamstest.Must(t, c.SetReachable(1, false, noon))
	c.SetFaults(func(f *Faults) { f.RadioDown = true })
	forget := func() protocol.Response {
		return c.ask(protocol.MethodDevicesForget, `{"device_id":1}`, noon)
	}
	if r := forget(); r.Error == nil || r.Error.Type != protocol.ErrorHubUnavailable {
		t.Errorf("devices.forget without a radio = %+v, want hub_unavailable", r)
	}
	c.SetFaults(func(f *Faults) { f.RadioDown = false })
	if r := forget(); r.Error != nil {
		t.Errorf("devices.forget with the radio: %v, want the device still there", r.Error)
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
	streamstest.Must(t, c.hub.Close())
	before := c.ask(protocol.MethodDevicesGet, `{"device_id":1}`, noon)
	if r := c.ask(protocol.MethodChannelsCommand, unlock, noon); r.Error == nil || r.Error.Type != "storage" {
		t.Errorf("%s %+v", r.Result, r.Error)
	}
	if after := c.ask(protocol.MethodDevicesGet, `{"device_id":1}`, noon); string(
		after.Result,
	) != string(before.Result) {
		t.Errorf("%s\nwas %s", after.Result, before.Result)
	}
}
