package hubbridge_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/protocol"
	"hubcloud/hubbridge/rpc"
	"hubcloud/hubbridge/virtualhub"
)

// Devices of a virtual hub, by their ids.
const (
	frontDoor  = 1
	thermostat = 2
	switches   = 4
	keypad     = 9
	shed       = 17
)

// TestDevicesOfAWholeHub asks a virtual hub for everything that it has, over real MQTT.
func TestDevicesOfAWholeHub(t *testing.T) {
	t.Parallel()
	i := newTestBridge(t)
	i.bridge("r1")
	h := i.wholeHub(5 * time.Second)
	ctx := t.Context()

	list, err := h.devices.List(ctx, h.id)
	if err != nil || len(list) != 17 || list[0].Name != "Front door" {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, listed := range list {
		device, err := h.devices.Get(ctx, h.id, listed.ID)
		if err != nil || len(device.Channels) == 0 {
			t.Errorf("device %d: %+v, %v", listed.ID, device, err)
		}
		// The same but for what a list leaves out.
		for n := range device.Channels {
			c := &device.Channels[n]
			if _, ok := domain.ParseChannelStatus(string(c.Status)); !ok ||
				c.ObservedAt == nil && c.Status != domain.ChannelUnknown {
				t.Errorf("device %d: %+v", listed.ID, c)
			}
			c.Value, c.ObservedAt, c.Desired, c.DesiredAt, c.Status = nil, nil, nil, nil, ""
		}
		if !reflect.DeepEqual(device, listed) {
			t.Errorf("listed as\n%+v, and got as\n%+v", listed, device)
		}
	}
	hall, err := h.devices.Get(ctx, h.id, thermostat)
	if err != nil {
		t.Fatal(err)
	}
	setpoint := slices.IndexFunc(
		hall.Channels, func(c domain.Channel) bool { return c.Key == "heating_setpoint" },
	)
	if c := hall.Channels[setpoint]; string(c.Capabilities) != `{"min":5,"max":35}` ||
		*c.Unit != "°C" ||
		!c.Writable ||
		string(c.Desired) != "" {
		t.Errorf("%+v", c)
	}
	_, err = h.devices.Get(ctx, h.id, 99)
	wantCode(t, "no such device", err, domain.CodeNotFound)

	wantCode(
		t, "forget what is there", h.devices.Forget(ctx, h.id, keypad), domain.CodeInvalidRequest,
	)
	wantCode(t, "forget what is not", h.devices.Forget(ctx, h.id, 99), domain.CodeNotFound)
	if err := h.Unreachable(keypad); err != nil {
		t.Fatal(err)
	}
	if gone, err := h.devices.Get(ctx, h.id, keypad); err != nil || gone.Channels[0].Available {
		t.Errorf("out of reach: %+v, %v", gone, err)
	}
	if err := h.devices.Forget(ctx, h.id, keypad); err != nil {
		t.Error(err)
	}
	_, err = h.devices.Get(ctx, h.id, keypad)
	wantCode(t, "forgotten", err, domain.CodeNotFound)
}

// TestWindowsOfAWholeHub opens and closes the windows of a virtual hub.
func TestWindowsOfAWholeHub(t *testing.T) {
	t.Parallel()
	i := newTestBridge(t)
	i.bridge("r1")
	h := i.wholeHub(
		5*time.Second, func(cfg *virtualhub.Config) { cfg.PairingWindow = 90 * time.Second },
	)
	ctx := t.Context()
	pin, bad := "12345", "1234"
	open := domain.Window{Status: "open", ExpiresIn: 90}
	for _, code := range []*string{nil, &pin} {
		if window, err := h.devices.OpenPairing(ctx, h.id, code); err != nil || window != open {
			t.Errorf("%+v, %v", window, err)
		}
	}
	_, err := h.devices.OpenPairing(ctx, h.id, &bad)
	wantCode(t, "no code", err, domain.CodeInvalidRequest)
	id, err := h.Join(virtualhub.DeviceSpec{Kind: "lock"})
	if err != nil {
		t.Fatal(err)
	}
	if window, err := h.devices.OpenRemoval(ctx, h.id); err != nil || window != open {
		t.Errorf("%+v, %v", window, err)
	}
	if err := h.Press(id); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := h.devices.ClosePairing(ctx, h.id); err != nil {
			t.Error(err)
		}
		if err := h.devices.CloseRemoval(ctx, h.id); err != nil {
			t.Error(err)
		}
	}
	if _, err := h.Join(virtualhub.DeviceSpec{Kind: "lock"}); err == nil {
		t.Error("joined in a closed window")
	}
	h.RadioDown(true)
	_, err = h.devices.OpenPairing(ctx, h.id, nil)
	wantCode(t, "the radio is down", err, domain.CodeHubUnavailable)
	_, err = h.devices.OpenRemoval(ctx, h.id)
	wantCode(t, "the radio is down", err, domain.CodeHubUnavailable)
}

// TestNonsense: a hub's answer of another form than the hub link's is the hub's error, whatever was
// asked; so is one about something else.
func TestNonsense(t *testing.T) {
	t.Parallel()
	i := newTestBridge(t)
	i.bridge("r1")
	answer := make(chan string, 1)
	h := i.hub()
	h.connect(func(r request) string {
		if text := <-answer; text != "" {
			return fmt.Sprintf(`{"id":%q,"result":%s}`, r.ID, text)
		}
		return "\x00"
	})
	h.eventuallyOnline(true)
	d, ctx := rpc.NewDevices(i.caller, nil, nil), t.Context()
	command := domain.Command{HubID: h.id, DeviceID: 3, Key: "lock", Value: json.RawMessage("true")}
	asks := map[string]func() error{
		protocol.MethodDevicesList:     func() error { _, err := d.List(ctx, h.id); return err },
		protocol.MethodDevicesGet:      func() error { _, err := d.Get(ctx, h.id, 3); return err },
		protocol.MethodDevicesForget:   func() error { return d.Forget(ctx, h.id, 3) },
		protocol.MethodPairingOpen:     func() error { _, err := d.OpenPairing(ctx, h.id, nil); return err },
		protocol.MethodPairingClose:    func() error { return d.ClosePairing(ctx, h.id) },
		protocol.MethodRemovalOpen:     func() error { _, err := d.OpenRemoval(ctx, h.id); return err },
		protocol.MethodRemovalClose:    func() error { return d.CloseRemoval(ctx, h.id) },
		protocol.MethodChannelsCommand: func() error { _, err := d.Command(ctx, command, "c"); return err },
	}
	for method, ask := range asks {
		for _, nonsense := range []string{
			"", "[]", "7", `"open"`, "{", `{"device":{"id":3}}`, strings.Repeat("[", 20_000),
		} {
			if strings.HasSuffix(method, "close") && strings.HasPrefix(nonsense, `{"`) ||
				method == protocol.MethodDevicesForget && strings.HasPrefix(nonsense, `{"`) {
				continue // an object is all that these ask for
			}
			answer <- nonsense
			if err := ask(); domain.CodeOf(err) != domain.CodeHubError {
				t.Errorf("%s answered %.30q: %v", method, nonsense, err)
			}
		}
	}
	const whole = `{"device":{"id":%d,"name":"n","manufacturer":"m","model":"m","channels":[]}}`
	answer <- fmt.Sprintf(whole, 4)
	wantCode(t, "another device", asks[protocol.MethodDevicesGet](), domain.CodeHubError)
	answer <- fmt.Sprintf(whole, 3)
	if err := asks[protocol.MethodDevicesGet](); err != nil {
		t.Error(err)
	}
}
