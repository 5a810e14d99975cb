package virtualhub

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"hubcloud/hubbridge/protocol"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func newTestController(t testing.TB, dir string) *controller {
	t.Helper()
	cfg, id, err := Config{
		EnrollURL: "http://127.0.0.1:1",
		Serial:    "HUB-7K2M-Q4XD-93TA",
		Secret:    "s",
		Quiet:     true,
		Dir:       dir,
	}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	c, err := newController(cfg, id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.close() })
	return c
}

func (c *controller) ask(method, params string, now time.Time) protocol.Response {
	return c.answer(
		protocol.Request{ID: "1", Token: "t", Method: method, Params: json.RawMessage(params)}, now,
	)
}

const unlock = `{"command_id":"c1","device_id":1,"key":"lock","endpoint":0,"value":false}`

// TestCommandMemory holds that a command id is remembered for 24 hours, on disk too, and not for
// longer.
func TestCommandMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := newTestController(t, dir)
	first := c.ask(protocol.MethodChannelsCommand, unlock, noon)
	if first.Error != nil {
		t.Fatal(first.Error)
	}
	c.advance(noon.Add(time.Hour))
	again := c.ask(protocol.MethodChannelsCommand, unlock, noon.Add(commandMemory-time.Second))
	if string(again.Result) != string(first.Result) {
		t.Errorf("%s, first %s", again.Result, first.Result)
	}
	c.advance(noon.Add(commandMemory))
	if n := len(c.journal.Entries(entryCommand)); n != 0 || len(c.commands) != 0 {
		t.Errorf("%d entries, %d commands after their time", n, len(c.commands))
	}
	if late := c.ask(protocol.MethodChannelsCommand, unlock, noon.Add(commandMemory)); string(
		late.Result,
	) == string(first.Result) {
		t.Error("remembered for too long")
	}
}

// TestCommandMemoryOverRestart holds that what was answered is answered again by the hub that is
// started anew on its directory, be it a refusal, for as long as before; and that hub_unavailable
// is not.
func TestCommandMemoryOverRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ask := func(c *controller, id, value string, now time.Time) string {
		params := fmt.Sprintf(
			`{"command_id":%q,"device_id":1,"key":"lock","endpoint":0,"value":%s}`, id, value,
		)
		return string(mustJSON(c.ask(protocol.MethodChannelsCommand, params, now)))
	}
	c := newTestController(t, dir)
	accepted, refused := ask(c, "accepted", "false", noon), ask(c, "refused", "7", noon)
	c.setFaults(func(f *Faults) { f.RadioDown = true })
	unavailable := ask(c, "unavailable", "false", noon)
	if !strings.Contains(accepted, "pending") || !strings.Contains(refused, "invalid_request") ||
		!strings.Contains(unavailable, "hub_unavailable") {
		t.Fatalf("%s\n%s\n%s", accepted, refused, unavailable)
	}
	restart := func() {
		if err := c.close(); err != nil {
			t.Fatal(err)
		}
		c = newTestController(t, dir)
	}
	restart()
	last := noon.Add(commandMemory - time.Second)
	// Other values under the same ids: it is the id that counts.
	if got := ask(c, "accepted", "true", last); got != accepted {
		t.Errorf("%s, first %s", got, accepted)
	}
	if got := ask(c, "refused", "true", last); got != refused {
		t.Errorf("%s, first %s", got, refused)
	}
	if got := ask(c, "unavailable", "false", last); !strings.Contains(got, "pending") {
		t.Errorf("what was not run: %s", got)
	}
	restart()
	if got := ask(c, "refused", "true", noon.Add(commandMemory)); !strings.Contains(
		got, "pending",
	) {
		t.Errorf("after its time: %s", got)
	}
}

// TestWindows holds how long a window is open.
func TestWindows(t *testing.T) {
	t.Parallel()
	c := newTestController(t, "")
	lock := DeviceSpec{Kind: "lock"}
	c.ask(protocol.MethodPairingOpen, `{}`, noon)
	if due := c.advance(noon.Add(time.Second)); !due.Equal(noon.Add(120 * time.Second)) {
		t.Errorf("due %v", due)
	}
	if _, err := c.join(lock, noon.Add(120*time.Second)); !errors.Is(err, ErrNoWindow) {
		t.Errorf("after 120 s: %v", err)
	}
	c.ask(protocol.MethodPairingOpen, `{}`, noon)
	c.ask(protocol.MethodPairingOpen, `{}`, noon.Add(100*time.Second)) // open anew
	if _, err := c.join(lock, noon.Add(219*time.Second)); err != nil {
		t.Error(err)
	}
}

// TestFaultSettings holds how faults are written as text.
func TestFaultSettings(t *testing.T) {
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
			t.Errorf("%q: taken, or half taken: %v", text, err)
		}
	}
}

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
		`{"devices": [{"kind": "lock"}, {"kind": "toaster"}]}`: `devices[1]: there is no kind of device "toaster"`,
		`{"joinable": [{"kind": "lock", "gangs": 2}]}`:         `joinable[0]: gangs is for a switch`,
		`{"device": []}`: `unknown field "device"`,
		`{} {}`:          `something follows`,
		`{"devices": [{"kind":"lock","latency":3}]}`: `duration`,
		`{"faults": {"late_answers": "soon"}}`:       `duration`,
		`[]`:                                         `array`,
	} {
		if _, err := parseDevicesFile([]byte(text)); err == nil ||
			!strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAdmission(t *testing.T) {
	t.Parallel()
	a := admission{every: 6 * time.Hour}
	if !a.refused(true, noon) {
		t.Error("not at once after a start")
	}
	a.enrolled(noon)
	if a.refused(true, noon.Add(6*time.Hour-time.Second)) ||
		!a.refused(true, noon.Add(6*time.Hour)) {
		t.Error("not after six hours")
	}
	a.connected()
	if a.refused(true, noon.Add(7*time.Hour)) || a.refused(true, noon.Add(12*time.Hour)) ||
		!a.refused(true, noon.Add(13*time.Hour)) {
		t.Error("one that was let in and is refused waits six hours")
	}
	a.restarted()
	for i, want := range []bool{false, true} {
		if a.refused(false, noon) != want {
			t.Errorf("a connection that is only closed counts the second time, not time %d", i+1)
		}
	}
	a.restarted()
	for i, want := range []bool{false, false, true} {
		if a.unreachable() != want {
			t.Errorf("no broker after a restart counts the third time, not time %d", i+1)
		}
	}
	a.connected()
	for range 5 {
		if a.unreachable() {
			t.Error("a broker that goes away is waited for")
		}
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	b := backoff{least: time.Second, most: 30 * time.Second}
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30, 30} {
		if wait := b.next(); wait < want*time.Second/2 || wait > want*time.Second*3/2 {
			t.Errorf("attempt %d: %v", i, wait)
		}
	}
	b.reset()
	if wait := b.next(); wait > 1500*time.Millisecond {
		t.Errorf("after a reset: %v", wait)
	}
}

func TestHistogram(t *testing.T) {
	t.Parallel()
	var h histogram
	if h.quantile(0.5) != 0 {
		t.Error("not empty")
	}
	for i := range 1000 {
		h.add(time.Duration(i+1) * time.Millisecond)
	}
	for q, want := range map[float64]time.Duration{
		0: time.Millisecond, 0.5: 500 * time.Millisecond, 0.99: 990 * time.Millisecond,
		1: time.Second,
	} {
		if got := h.quantile(q); got < want || float64(got) > 1.14*float64(want) {
			t.Errorf("quantile %v is %v", q, got)
		}
	}
	h.add(0)
	h.add(1e6 * time.Hour)
	h.reset()
	if h.quantile(1) != 0 {
		t.Error("not forgotten")
	}
}

// FuzzRequest: whatever comes as a request, it is passed over or answered with exactly one of a
// result and an error, on a topic that can be published to.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		`{"id":"1","token":"a/b","method":"devices.list","params":{},"timeout_ms":10000}`,
		`{"id":"1","token":"a","method":"devices.get","params":{"device_id":3}}`,
		`{"id":"1","token":"a","method":"devices.forget","params":{"device_id":3}}`,
		`{"id":"1","token":"a","method":"channels.command","params":` + unlock + `}`,
		`{"id":"1","token":"a","method":"channels.command","params":{"command_id":"x","device_id":10,"key":"color","value":{"red":1,"green":2,"blue":3}}}`,
		`{"id":"1","token":"a","method":"pairing.open","params":{"setup_code":"12345"}}`,
		`{"id":"1","token":"a","method":"pairing.close"}`,
		`{"id":"1","token":"a","method":"removal.open","params":null}`,
		`{"id":"1","token":"a","method":"removal.close","params":[]}`,
		`{"id":"1","token":"#","method":"devices.list"}`, `{"id":"1","token":"a//b"}`, `[]`,
		`null`, `{`,
	} {
		f.Add([]byte(seed))
	}
	c := newTestController(f, "")
	f.Fuzz(func(t *testing.T, payload []byte) {
		req, err := decodeRequest(payload)
		if err != nil {
			if !errors.Is(err, errBadRequest) {
				t.Fatal(err)
			}
			return
		}
		if strings.ContainsAny(req.Token, "+#\x00") || strings.Contains("/"+req.Token+"/", "//") {
			t.Fatalf("token %q", req.Token)
		}
		r := c.answer(req, noon)
		if r.ID != req.ID || (r.Result == nil) == (r.Error == nil) ||
			r.Error != nil && (r.Error.Type == "" || r.Error.Message == "") {
			t.Fatalf("%+v", r)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzAck: whatever comes as an ack, the hub stands where it can stand.
func FuzzAck(f *testing.F) {
	f.Add([]byte(`{"log":"x","through":1}`), uint8(3))
	f.Add([]byte(`{"log":"x","through":-1}`), uint8(3))
	f.Add([]byte(`{"log":"x","through":9007199254740992}`), uint8(3))
	f.Fuzz(func(t *testing.T, payload []byte, n uint8) {
		c := newTestController(t, "")
		c.journal.Reset("x", nil)
		connection := c.connect()
		c.outgoing(connection, noon)
		for range n {
			if _, err := c.emit(noon, []Event{{Type: "t"}}); err != nil {
				t.Fatal(err)
			}
		}
		c.ack(connection, payload, noon)
		for range 10 {
			c.outgoing(connection, noon)
		}
		if s := c.status(); s.Oldest > s.Newest+1 || s.Newest > protocol.MaxNumber+256 {
			t.Fatalf("%+v", s)
		}
	})
}

// TestFullDisk holds that a command that cannot be kept is not run, and not remembered.
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
