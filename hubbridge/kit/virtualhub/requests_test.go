package virtualhub

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hubcloud/domain"
	"hubcloud/hubbridge/kit/hub"
	"hubcloud/hubbridge/protocol"
	"hubcloud/streams/streamstest"
)

// The check of hubs runs a virtual hub through the hub protocol (check.TestRightHub), and the suites in
// folder test use them against the service. These tests try what neither sees.

// rejected fails the test unless a response is an error of a type, with a message.
func rejected(t testing.TB, r protocol.Response, kind string) {
	t.Helper()
	if r.Error == nil || r.Error.Type != kind || r.Error.Message == "" {
		t.Errorf("response %s %+v, want error %s", r.Result, r.Error, kind)
	}
}

// lock commands the lock of a device.
func (h *testHub) lock(id string, device int64, value bool) protocol.Response {
	return h.ask(protocol.MethodChannelsCommand, fmt.Sprintf(
		`{"command_id":%q,"device_id":%d,"key":"lock","endpoint":0,"value":%v}`, id, device, value,
	), h.time)
}

// wantLock advances the hub, and fails the test unless a lock has a status and a value then.
func (h *testHub) wantLock(t testing.TB, device int64, status domain.ChannelStatus, value bool) {
	t.Helper()
	h.time = h.time.Add(time.Minute)
	h.advance(h.time)
	d, _ := h.View(device)
	if c := d.Channels[0]; c.Status != status || c.Value != value {
		t.Errorf("lock %d is %s and %v, want %s and %v", device, c.Status, c.Value, status, value)
	}
}

func TestPairingAndRemoval(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, "")
	side := DeviceSpec{Kind: "lock", Name: "Side door"}
	if _, err := h.Join(side, noon); !errors.Is(err, ErrNoWindow) {
		t.Errorf("without a window: %v, want ErrNoWindow", err)
	}
	for _, code := range []string{
		`"1234"`, `"123456"`, `"abcde"`, `""`, `"12345-12345"`, `"90"`, `12345`,
	} {
		r := h.ask(protocol.MethodPairingOpen, `{"setup_code":`+code+`}`, noon)
		rejected(t, r, protocol.ErrorInvalidRequest)
	}
	for i, code := range []string{
		``, `"12345"`, `"11111-22222-33333-44444-55555-66666-77777-88888"`,
		`"90` + strings.Repeat("1", 60) + `"`, `"MT:Y.K9042C00KA0648G00"`,
	} {
		params := `{}`
		if code != "" {
			params = `{"setup_code":` + code + `}`
		}
		opened := h.ask(protocol.MethodPairingOpen, params, noon)
		if got := string(opened.Result); got != `{"status":"open","expires_in":120}` {
			t.Fatalf("%s: got %s %+v", code, got, opened.Error)
		}
		id, err := h.Join(side, noon)
		if err != nil || id != int64(18+i) {
			t.Fatalf("joined as %d: %v", id, err)
		}
		if _, err := h.Join(side, noon); !errors.Is(err, ErrNoWindow) {
			t.Errorf("second device in one window: %v, want ErrNoWindow", err)
		}
		if r := h.lock(fmt.Sprint("c", i), id, false); code == "" {
			rejected(t, r, protocol.ErrorCommandRefused) // it has not joined securely
		} else if r.Error != nil {
			t.Errorf("%s: command: %v", code, r.Error)
		}
	}

	const keypad = 9
	if err := h.Press(keypad, noon); !errors.Is(err, ErrNoWindow) {
		t.Errorf("without a window: %v, want ErrNoWindow", err)
	}
	opened := h.ask(protocol.MethodRemovalOpen, `{}`, noon)
	if got := string(opened.Result); got != `{"status":"open","expires_in":120}` {
		t.Errorf("removal.open: got %s %+v", got, opened.Error)
	}
	if err := h.Press(keypad, noon); err != nil {
		t.Error(err)
	}
	rejected(t, h.ask(protocol.MethodDevicesGet, `{"device_id":9}`, noon), protocol.ErrorNotFound)
	h.ask(protocol.MethodRemovalOpen, `{}`, noon)
	h.ask(protocol.MethodRemovalClose, `{}`, noon)
	if err := h.Press(1, noon); !errors.Is(err, ErrNoWindow) {
		t.Errorf("in a closed window: %v, want ErrNoWindow", err)
	}
}

// The installer acts while a window is open.
func TestInstaller(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, "")
	h.cfg.Installer = time.Second
	h.ask(protocol.MethodPairingOpen, `{"setup_code":"12345"}`, noon)
	h.advance(noon.Add(2 * time.Second))
	ids := h.DeviceIDs()
	joined := ids[len(ids)-1]
	h.ask(protocol.MethodRemovalOpen, `{}`, noon)
	h.advance(noon.Add(4 * time.Second))
	if _, there := h.View(joined); joined != 18 || there {
		t.Errorf("device %d joined, and left: %v, want that 18 joins and leaves", joined, !there)
	}
}

// A command that a fault rejects is not remembered: it runs when it is repeated.
func TestFaultsOfCommands(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, "")
	for _, fault := range []Faults{{RadioDown: true}, {ClockUnknown: true}} {
		h.SetFaults(func(f *Faults) { *f = fault })
		rejected(t, h.lock("again", 1, false), protocol.ErrorHubUnavailable)
		for _, method := range []string{protocol.MethodPairingOpen, protocol.MethodRemovalOpen} {
			rejected(t, h.ask(method, `{}`, noon), protocol.ErrorHubUnavailable)
		}
	}
	h.SetFaults(func(f *Faults) { *f = Faults{} })
	first := h.lock("again", 1, false)
	h.SetFaults(func(f *Faults) { *f = Faults{RadioDown: true} })
	if again := h.lock("again", 1, false); first.Error != nil || again.Error != nil {
		t.Errorf("got %v, and repeated %v, want the first answer twice", first.Error, again.Error)
	}
	h.wantLock(t, 1, domain.ChannelFailed, true)

	h.SetFaults(func(f *Faults) { *f = Faults{Jammed: []int64{1}} })
	h.lock("jammed", 1, false)
	h.wantLock(t, 1, domain.ChannelDiverged, true)
	h.SetFaults(func(f *Faults) { *f = Faults{} })
	h.lock("free", 1, false)
	h.wantLock(t, 1, domain.ChannelSynchronized, false)
	h.SetFaults(func(f *Faults) { *f = Faults{RejectCommands: true} })
	rejected(t, h.lock("rejected", 1, true), protocol.ErrorCommandRefused)
	h.SetFaults(func(f *Faults) { *f = Faults{LateAnswers: Duration(50 * time.Millisecond)} })
	begun := time.Now()
	h.ask(protocol.MethodDevicesList, `{}`, h.time)
	if took := time.Since(begun); took < 50*time.Millisecond {
		t.Errorf("answer after %v, want at least 50ms", took)
	}
}

// Devices that change tell so, and only then.
func TestReports(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, "")
	newest := h.hub.Status().Newest
	for range 2 {
		for key, value := range map[string]string{"scene": `{"scene":2}`, "tamper": `true`} {
			if err := h.Report(9, ChannelRef{Key: key}, json.RawMessage(value), noon); err != nil {
				t.Error(err)
			}
		}
	}
	if err := errors.Join(
		h.SetReachable(9, true, noon), // no change
		h.Rename(9, "Porch keypad", []ChannelRef{{Key: "tamper"}, {Key: "lock"}}, noon),
	); err != nil {
		t.Error(err)
	}
	if got := h.hub.Status().Newest - newest; got != 4 {
		t.Errorf("got %d events, want 2 of scenes, 1 of tampering, and the new name", got)
	}
	for _, device := range []int64{9, 99} {
		if h.Report(device, ChannelRef{Key: "tamper"}, json.RawMessage(`true`), noon) == nil {
			t.Errorf("a channel that does not exist reports at device %d", device)
		}
	}
}

// A hub that is started from a copy of the directory has the devices and command ids, answers a
// repeated command with the first answer, and completes the pending command.
func TestStateSurvivesKill(t *testing.T) {
	t.Parallel()
	dir, copied := t.TempDir(), t.TempDir()
	h := newTestHub(t, dir)
	first := h.lock("once", 1, false)
	h.ask(protocol.MethodPairingOpen, `{}`, noon)
	id, err := h.Join(DeviceSpec{Kind: "leak_sensor", Name: "Boiler"}, noon)
	if err = errors.Join(
		err, h.Rename(2, "Twins", nil, noon), os.CopyFS(copied, os.DirFS(dir)),
	); err != nil {
		t.Fatal(err)
	}

	h = newTestHub(t, copied)
	if again := h.lock("once", 1, false); string(again.Result) != string(first.Result) {
		t.Errorf("got %s, want the first answer, %s", again.Result, first.Result)
	}
	h.wantLock(t, 1, domain.ChannelSynchronized, false)
	for device, name := range map[int64]string{2: "Twins", id: "Boiler"} {
		if d, ok := h.View(device); !ok || d.Name != name {
			t.Errorf("device %d is %+v", device, d)
		}
	}
	streamstest.Must(t, h.Reset(noon))
	if _, ok := h.View(id); ok {
		t.Error("the device that joined still exists after a factory reset")
	}
	h.lock("once", 1, true)
	h.wantLock(t, 1, domain.ChannelSynchronized, true)
}

func TestConfig(t *testing.T) {
	t.Parallel()
	good := Config{Config: hub.Config{
		EnrollURL: "http://127.0.0.1:1", Serial: "HUB-7K2M-Q4XD-93TA", Secret: "s",
	}}
	for name, change := range map[string]func(*Config){
		"serial":     func(c *Config) { c.Serial = "HUB-7K2M" },
		"secret":     func(c *Config) { c.Secret = "" },
		"address":    func(c *Config) { c.EnrollURL = "" },
		"batch":      func(c *Config) { c.Batch = 501 },
		"keep-alive": func(c *Config) { c.KeepAlive = 61 * time.Second },
		"devices":    func(c *Config) { c.Devices = []DeviceSpec{{Kind: "toaster"}} },
	} {
		cfg := good
		change(&cfg)
		if h, err := New(cfg); err == nil {
			t.Errorf("%s: New returned no error", name)
			_ = h.Close()
		}
	}
	for name, cfg := range map[string]FleetConfig{
		"rate":  {Rate: -1},
		"batch": {Batch: 501},
		"hub":   {Hubs: []Credentials{{Serial: "x"}}},
	} {
		cfg.EnrollURL = "http://127.0.0.1:1"
		if _, err := NewFleet(cfg); err == nil {
			t.Errorf("%s of a fleet: NewFleet returned no error", name)
		}
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }
