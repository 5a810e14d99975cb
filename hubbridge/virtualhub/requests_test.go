package virtualhub_test

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"hubcloud/hubbridge/protocol"
	"hubcloud/hubbridge/virtualhub"
	"hubcloud/streams/streamstest"
)

// Ids of devices of device.Demo.
const (
	frontDoor  = 1
	thermostat = 2
	keypad     = 9
	shed       = 17
)

type params map[string]any

func command(id string, device int, key string, value any) params {
	return params{"command_id": id, "device_id": device, "key": key, "endpoint": 0, "value": value}
}

// rejected fails the test unless r is an error of the given type with a message.
func rejected(t testing.TB, r protocol.Response, kind string) {
	t.Helper()
	if r.Error == nil || r.Error.Type != kind || r.Error.Message == "" {
		t.Errorf("response %s %+v, want error %s", r.Result, r.Error, kind)
	}
}

func result[T any](t testing.TB, r protocol.Response) (value T) {
	t.Helper()
	if r.Error != nil {
		t.Fatalf("response %+v, want a result", r.Error)
	}
	must(t, json.Unmarshal(r.Result, &value))
	return value
}

type channel struct {
	Key     string
	Status  string
	Value   any
	Desired any
}

type channelAnswer struct{ Channel channel }

type deviceAnswer struct {
	Device struct {
		ID       int64
		Name     string
		Channels []channel
	}
}

func (c *cloud) channel(t testing.TB, h *virtualhub.Hub, device int, key string) channel {
	t.Helper()
	d := result[deviceAnswer](
		t, c.call(t, h, protocol.MethodDevicesGet, params{"device_id": device}),
	)
	i := slices.IndexFunc(d.Device.Channels, func(ch channel) bool { return ch.Key == key })
	if i < 0 {
		t.Fatalf("device %d has no %s", device, key)
	}
	return d.Device.Channels[i]
}

// becomes waits until a channel has a status and a value.
func (c *cloud) becomes(
	t testing.TB, h *virtualhub.Hub, device int, key, status string, value any,
) {
	t.Helper()
	var last channel
	defer func() {
		if t.Failed() {
			t.Logf("%s of %d is %+v", key, device, last)
		}
	}()
	streamstest.Eventually(t, key+" "+status, func() bool {
		last = c.channel(t, h, device, key)
		return last.Status == status && last.Value == value
	})
}

func TestRequests(t *testing.T) {
	t.Parallel()
	c := startCloud(t)
	hub := func(t *testing.T, id string) *virtualhub.Hub {
		t.Parallel()
		return c.hub(t, id, func(cfg *virtualhub.Config) { cfg.GiveUp = 200 * time.Millisecond })
	}

	t.Run("devices", func(t *testing.T) {
		h := hub(t, "hub-meth-0000-0001")
		list := result[struct{ Devices []map[string]any }](
			t, c.call(t, h, protocol.MethodDevicesList, params{}),
		)
		if len(list.Devices) != 17 || len(list.Devices[0]) != 5 ||
			list.Devices[0]["name"] != "Front door" {
			t.Errorf("%v", list.Devices)
		}
		d := result[deviceAnswer](
			t, c.call(t, h, protocol.MethodDevicesGet, params{"device_id": thermostat}),
		)
		if d.Device.ID != thermostat || d.Device.Name != "Hall thermostat" ||
			len(d.Device.Channels) != 9 {
			t.Errorf("%+v", d)
		}
		rejected(t, c.call(t, h, protocol.MethodDevicesGet, params{"device_id": 99}), "not_found")
		rejected(t, c.call(t, h, protocol.MethodDevicesGet, params{}), "invalid_request")
		rejected(
			t, c.call(t, h, protocol.MethodDevicesGet, params{"device_id": "1"}), "invalid_request",
		)
		rejected(t, c.call(t, h, protocol.MethodDevicesGet, []int{1}), "invalid_request")
		rejected(t, c.call(t, h, "devices.paint", params{}), "unknown_method")
		if r := c.call(t, h, protocol.MethodDevicesList, nil); r.Error != nil {
			t.Errorf("without params: %+v", r.Error)
		}
	})

	t.Run("forget", func(t *testing.T) {
		h := hub(t, "hub-meth-0000-0002")
		rejected(
			t, c.call(t, h, protocol.MethodDevicesForget, params{"device_id": 99}), "not_found",
		)
		rejected(
			t, c.call(t, h, protocol.MethodDevicesForget, params{"device_id": keypad}),
			"invalid_request",
		)
		must(t, h.Unreachable(keypad))
		if got := string(c.call(t, h, protocol.MethodDevicesForget, params{
			"device_id": keypad,
		}).Result); got != "{}" {
			t.Errorf("answer %s", got)
		}
		rejected(
			t, c.call(t, h, protocol.MethodDevicesForget, params{"device_id": keypad}), "not_found",
		)
		streamstest.Eventually(
			t, "events stored",
			func() bool { return len(c.of(h, "device.unavailable", "device.forgotten")) == 2 },
		)
		e := c.of(h, "device.forgotten")[0]
		if string(e.Data) != `{"name":"Hall keypad"}` || *e.DeviceID != keypad {
			t.Errorf("unexpected event %+v", e)
		}
	})

	t.Run("command", func(t *testing.T) {
		h := hub(t, "hub-meth-0000-0003")
		answer := result[channelAnswer](
			t,
			c.call(t, h, protocol.MethodChannelsCommand, command("c1", frontDoor, "lock", false)),
		)
		if answer.Channel != (channel{"lock", "pending", true, false}) {
			t.Errorf("answer %+v", answer)
		}
		c.becomes(t, h, frontDoor, "lock", "synchronized", false)
		streamstest.Eventually(t, "events stored", func() bool { return len(c.of(h)) == 2 })
		for i, want := range []string{"channel.desired", "channel.observed"} {
			if e := c.of(h)[i]; e.Type != want ||
				string(e.Data) != `{"key":"lock","endpoint":0,"value":false}` ||
				*e.DeviceID != frontDoor {
				t.Errorf("event %d: %+v", i, e)
			}
		}
		rejected(
			t,
			c.call(t, h, protocol.MethodChannelsCommand, command("c2", frontDoor, "lock", "shut")),
			"invalid_request",
		)
		rejected(
			t,
			c.call(t, h, protocol.MethodChannelsCommand, command("c3", frontDoor, "battery", 100)),
			"invalid_request",
		)
		rejected(
			t,
			c.call(t, h, protocol.MethodChannelsCommand, command("c4", frontDoor, "switch", true)),
			"not_found",
		)
		rejected(
			t, c.call(t, h, protocol.MethodChannelsCommand, command("c5", 99, "lock", true)),
			"not_found",
		)
		rejected(
			t, c.call(t, h, protocol.MethodChannelsCommand, command("c6", shed, "lock", true)),
			"command_refused",
		)
		rejected(
			t, c.call(t, h, protocol.MethodChannelsCommand, command("", frontDoor, "lock", true)),
			"invalid_request",
		)
		// a person turns the knob
		must(t, h.Report(frontDoor, virtualhub.ChannelRef{Key: "lock"}, true))
		c.becomes(t, h, frontDoor, "lock", "diverged", true)
	})

	t.Run("a command id runs once", func(t *testing.T) {
		h := hub(t, "hub-meth-0000-0004")
		var answers []<-chan protocol.Response
		for range 20 {
			answers = append(
				answers,
				c.ask(
					t, h, protocol.MethodChannelsCommand, command("same", frontDoor, "lock", false),
				),
			)
		}
		first := <-answers[0]
		for _, answer := range answers[1:] {
			if r := <-answer; string(r.Result) != string(first.Result) || r.ID == first.ID {
				t.Errorf("%+v, first %+v", r, first)
			}
		}
		c.becomes(t, h, frontDoor, "lock", "synchronized", false)
		if r := c.call(
			t, h, protocol.MethodChannelsCommand, command("same", frontDoor, "lock", true),
		); string(
			r.Result,
		) != string(first.Result) {
			t.Errorf("later: %s", r.Result)
		}
		rejected(
			t, c.call(t, h, protocol.MethodChannelsCommand, command("bad", frontDoor, "lock", 1)),
			"invalid_request",
		)
		rejected(
			t,
			c.call(t, h, protocol.MethodChannelsCommand, command("bad", frontDoor, "lock", true)),
			"invalid_request",
		)
		if n := len(c.of(h, "channel.desired")); n != 1 {
			t.Errorf("run %d times, want once", n)
		}
	})

	t.Run("hub_unavailable is not remembered", func(t *testing.T) {
		h := hub(t, "hub-meth-0000-0005")
		for _, fault := range []func(bool){h.RadioDown, h.ClockUnknown} {
			fault(true)
			rejected(
				t,
				c.call(
					t, h, protocol.MethodChannelsCommand,
					command("again", frontDoor, "lock", false),
				),
				"hub_unavailable",
			)
			rejected(t, c.call(t, h, protocol.MethodPairingOpen, params{}), "hub_unavailable")
			rejected(t, c.call(t, h, protocol.MethodRemovalOpen, params{}), "hub_unavailable")
			fault(false)
		}
		result[channelAnswer](
			t,
			c.call(
				t, h, protocol.MethodChannelsCommand, command("again", frontDoor, "lock", false),
			),
		)
		h.RadioDown(true)
		if r := c.call(
			t, h, protocol.MethodChannelsCommand, command("again", frontDoor, "lock", false),
		); r.Error != nil {
			t.Errorf("repeat of a command that ran: %+v, want its first answer", r.Error)
		}
		c.becomes(t, h, frontDoor, "lock", "failed", true)
	})

	t.Run("jammed, rejected, late", func(t *testing.T) {
		h := hub(t, "hub-meth-0000-0006")
		h.Jam(frontDoor)
		result[channelAnswer](
			t, c.call(t, h, protocol.MethodChannelsCommand, command("j", frontDoor, "lock", false)),
		)
		c.becomes(t, h, frontDoor, "lock", "diverged", true)
		h.Unjam(frontDoor)
		result[channelAnswer](
			t, c.call(t, h, protocol.MethodChannelsCommand, command("k", frontDoor, "lock", false)),
		)
		c.becomes(t, h, frontDoor, "lock", "synchronized", false)
		h.RejectCommands(true)
		rejected(
			t, c.call(t, h, protocol.MethodChannelsCommand, command("r", frontDoor, "lock", true)),
			"command_refused",
		)
		h.LateAnswers(300 * time.Millisecond)
		begun := time.Now()
		late := c.ask(t, h, protocol.MethodDevicesList, params{})
		<-late
		if took := time.Since(begun); took < 300*time.Millisecond {
			t.Errorf("response after %v, want at least 300ms", took)
		}
	})

	t.Run("the clock is unknown", func(t *testing.T) {
		h := hub(t, "hub-meth-0000-0007")
		h.ClockUnknown(true)
		c.acked(t, h, emit(t, h, 1))
		if e := c.of(h)[0]; e.ClockTrusted == nil || *e.ClockTrusted ||
			!strings.HasPrefix(e.Time, "2000-01-01T") {
			t.Errorf("unexpected event %+v", e)
		}
		h.CutConnection()
		streamstest.Eventually(t, "hello with an untrusted clock", func() (untrusted bool) {
			c.with(h, func(r *remote) { untrusted = !*r.hellos[len(r.hellos)-1].ClockTrusted })
			return untrusted
		})
	})

	t.Run("pairing", func(t *testing.T) {
		h := hub(t, "hub-meth-0000-0008")
		side := virtualhub.DeviceSpec{Kind: "lock", Name: "Side door"}
		if _, err := h.Join(side); !errors.Is(err, virtualhub.ErrNoWindow) {
			t.Errorf("without a window: %v, want ErrNoWindow", err)
		}
		for _, code := range []any{"1234", "123456", "abcde", "", "12345-12345", "90", 12345} {
			rejected(
				t, c.call(t, h, protocol.MethodPairingOpen, params{"setup_code": code}),
				"invalid_request",
			)
		}
		for i, code := range []any{
			nil, "12345", "11111-22222-33333-44444-55555-66666-77777-88888",
			"90" + strings.Repeat("1", 60), "MT:Y.K9042C00KA0648G00",
		} {
			body := params{}
			if code != nil {
				body["setup_code"] = code
			}
			r := c.call(t, h, protocol.MethodPairingOpen, body)
			if string(r.Result) != `{"status":"open","expires_in":120}` {
				t.Fatalf("%v: %s %+v", code, r.Result, r.Error)
			}
			id, err := h.Join(side)
			if err != nil || id != int64(18+i) {
				t.Fatalf("joined as %d: %v", id, err)
			}
			if _, err := h.Join(side); !errors.Is(err, virtualhub.ErrNoWindow) {
				t.Errorf("second device in one window: %v, want ErrNoWindow", err)
			}
			r = c.call(
				t, h, protocol.MethodChannelsCommand,
				command("p"+side.Name+string(rune('a'+i)), int(id), "lock", false),
			)
			if code == nil {
				rejected(t, r, "command_refused")
			} else {
				result[channelAnswer](t, r)
			}
		}
		result[struct{}](t, c.call(t, h, protocol.MethodPairingOpen, params{}))
		result[struct{}](t, c.call(t, h, protocol.MethodPairingClose, params{}))
		if _, err := h.Join(side); !errors.Is(err, virtualhub.ErrNoWindow) {
			t.Errorf("in a closed window: %v, want ErrNoWindow", err)
		}
		streamstest.Eventually(
			t, "events stored", func() bool { return len(c.of(h, "device.added")) == 5 },
		)
		if e := c.of(h)[0]; e.Type != "device.added" || string(e.Data) != `{"name":"Side door"}` ||
			*e.DeviceID != 18 {
			t.Errorf("unexpected event %+v", e)
		}
	})

	t.Run("removal", func(t *testing.T) {
		h := hub(t, "hub-meth-0000-0009")
		if err := h.Press(keypad); !errors.Is(err, virtualhub.ErrNoWindow) {
			t.Errorf("without a window: %v, want ErrNoWindow", err)
		}
		if r := c.call(t, h, protocol.MethodRemovalOpen, params{}); string(
			r.Result,
		) != `{"status":"open","expires_in":120}` {
			t.Errorf("%s %+v", r.Result, r.Error)
		}
		must(t, h.Press(keypad))
		if err := h.Press(frontDoor); !errors.Is(err, virtualhub.ErrNoWindow) {
			t.Errorf("second device: %v, want ErrNoWindow", err)
		}
		result[struct{}](t, c.call(t, h, protocol.MethodRemovalOpen, params{}))
		result[struct{}](t, c.call(t, h, protocol.MethodRemovalClose, params{}))
		if err := h.Press(frontDoor); !errors.Is(err, virtualhub.ErrNoWindow) {
			t.Errorf("in a closed window: %v, want ErrNoWindow", err)
		}
		streamstest.Eventually(
			t, "events stored", func() bool { return len(c.of(h, "device.forgotten")) == 1 },
		)
		rejected(
			t, c.call(t, h, protocol.MethodDevicesGet, params{"device_id": keypad}), "not_found",
		)
	})

	t.Run("reports", func(t *testing.T) {
		h := hub(t, "hub-meth-0000-0010")
		scene := map[string]any{"scene": 2, "attribute": "pressed"}
		for range 2 {
			must(t, h.Report(keypad, virtualhub.ChannelRef{Key: "scene"}, scene))
			must(t, h.Report(keypad, virtualhub.ChannelRef{Key: "tamper"}, true))
		}
		must(t, h.Reachable(keypad)) // no change: no event
		must(
			t,
			h.Rename(
				keypad, "Porch keypad", virtualhub.ChannelRef{Key: "tamper"},
				virtualhub.ChannelRef{Key: "lock"},
			),
		)
		if h.Report(keypad, virtualhub.ChannelRef{Key: "tamper"}, true) == nil ||
			h.Report(99, virtualhub.ChannelRef{Key: "tamper"}, true) == nil {
			t.Error("Report() for a channel or device that does not exist returned no error")
		}
		streamstest.Eventually(t, "events stored", func() bool { return len(c.of(h)) == 4 })
		var data []string
		for _, e := range c.of(h) {
			data = append(data, e.Type+" "+string(e.Data))
		}
		if want := []string{
			`channel.observed {"key":"scene","endpoint":0,"value":{"scene":2,"attribute":"pressed"}}`,
			`channel.observed {"key":"tamper","endpoint":0,"value":true}`,
			`channel.observed {"key":"scene","endpoint":0,"value":{"scene":2,"attribute":"pressed"}}`,
			`device.updated {"name":"Porch keypad","removed_channels":[{"key":"tamper","endpoint":0}]}`,
		}; !slices.Equal(data, want) {
			t.Errorf("%q", data)
		}
	})

	t.Run("concurrently", func(t *testing.T) {
		h := hub(t, "hub-meth-0000-0011")
		h.LateAnswers(500 * time.Millisecond)
		var answers []<-chan protocol.Response
		begun := time.Now()
		for range 50 {
			answers = append(answers, c.ask(t, h, protocol.MethodDevicesList, params{}))
		}
		for _, answer := range answers {
			<-answer
		}
		if took := time.Since(begun); took > 20*time.Second {
			t.Errorf("50 answers took %v", took)
		}
	})
}

// TestInstaller: the installer acts while a window is open.
func TestInstaller(t *testing.T) {
	t.Parallel()
	c := startCloud(t)
	h := c.hub(
		t, "hub-wind-0000-0002",
		func(cfg *virtualhub.Config) { cfg.Installer = 20 * time.Millisecond },
	)
	result[struct{}](t, c.call(t, h, protocol.MethodPairingOpen, params{"setup_code": "12345"}))
	streamstest.Eventually(
		t, "a device joins", func() bool { return len(c.of(h, "device.added")) == 1 },
	)
	result[struct{}](t, c.call(t, h, protocol.MethodRemovalOpen, params{}))
	streamstest.Eventually(
		t, "it leaves", func() bool { return len(c.of(h, "device.forgotten")) == 1 },
	)
	if added, gone := c.of(h, "device.added")[0], c.of(h, "device.forgotten")[0]; *added.DeviceID != *gone.DeviceID {
		t.Errorf("%d joined, %d left", *added.DeviceID, *gone.DeviceID)
	}
}

// TestStateSurvivesKill: a hub that is started from a copy of the directory has the devices and
// command ids, answers a repeated command with the first answer, and completes the pending command.
func TestStateSurvivesKill(t *testing.T) {
	t.Parallel()
	c := startCloud(t)
	credentials := c.register(t, "hub-keep-0000-0001")
	slow := []virtualhub.DeviceSpec{{Kind: "lock", Name: "Front door"}, {Kind: "switch", Gangs: 2}}
	must(t, json.Unmarshal([]byte(`"700ms"`), &slow[0].Latency))
	cfg := virtualhub.Config{
		EnrollURL: c.http.URL, Serial: credentials.Serial, Secret: credentials.Secret, Quiet: true,
		Dir: t.TempDir(), Devices: slow,
		BackoffMin: 20 * time.Millisecond,
	}
	h, stop := c.start(t, cfg)
	c.connected(t, h)
	first := c.call(t, h, protocol.MethodChannelsCommand, command("once", 1, "lock", false))
	result[struct{}](t, c.call(t, h, protocol.MethodPairingOpen, params{}))
	id, err := h.Join(virtualhub.DeviceSpec{Kind: "leak_sensor", Name: "Boiler"})
	must(t, err)
	must(t, h.Rename(2, "Twins"))
	copied := t.TempDir()
	must(t, os.CopyFS(copied, os.DirFS(cfg.Dir)))
	stop()

	cfg.Dir = copied
	h, _ = c.start(t, cfg)
	c.connected(t, h)
	if again := c.call(t, h, protocol.MethodChannelsCommand, command("once", 1, "lock", false)); string(
		again.Result,
	) != string(first.Result) {
		t.Errorf("answer %s, want the first, %s", again.Result, first.Result)
	}
	c.becomes(t, h, 1, "lock", "synchronized", false)
	if n := len(c.of(h, "channel.desired")); n != 1 {
		t.Errorf("run %d times, want once", n)
	}
	for device, name := range map[int64]string{2: "Twins", id: "Boiler"} {
		if d, ok := h.Device(device); !ok || d.Name != name {
			t.Errorf("device %d is %+v", device, d)
		}
	}
	must(t, h.FactoryReset())
	if _, ok := h.Device(id); ok {
		t.Error("device that joined still exists after a factory reset")
	}
	c.connected(t, h)
	result[channelAnswer](
		t, c.call(t, h, protocol.MethodChannelsCommand, command("once", 1, "lock", true)),
	)
	c.becomes(t, h, 1, "lock", "synchronized", true)
}

// TestDemoReports: a hub with the devices of the demo reports soon after it has connected.
func TestDemoReports(t *testing.T) {
	t.Parallel()
	c := startCloud(t)
	h := c.hub(t, "hub-aliv-0000-0001", func(cfg *virtualhub.Config) { cfg.Quiet = false })
	begun := time.Now()
	streamstest.Eventually(t, "an event", func() bool { return len(c.of(h)) > 0 })
	t.Logf("took %v", time.Since(begun))
}
