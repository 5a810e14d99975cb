package hubbridge_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/kit/virtualhub"
)

// Devices of a virtual hub, by their ids.
const (
	frontDoor  = 1
	thermostat = 2
	switches   = 4
	keypad     = 9
	shed       = 17
)

// TestDevicesOfAWholeHub lists, gets and forgets the devices of a virtual hub over real MQTT.
func TestDevicesOfAWholeHub(t *testing.T) {
	t.Parallel()
	i := newTestBridge(t)
	i.bridge("r1")
	h := i.wholeHub(5 * time.Second)
	ctx := t.Context()

	list, err := h.devices.List(ctx, h.id)
	if err != nil || len(list) != 17 || list[0].Name != "Front door" {
		t.Fatalf("List = %+v, %v, want 17 devices from Front door", list, err)
	}
	for _, listed := range list {
		device, err := h.devices.Get(ctx, h.id, listed.ID)
		if err != nil || len(device.Channels) == 0 {
			t.Errorf("Get(%d) = %+v, %v, want channels", listed.ID, device, err)
		}
		// A list has no values.
		for n := range device.Channels {
			c := &device.Channels[n]
			if _, ok := domain.ParseChannelStatus(string(c.Status)); !ok ||
				c.ObservedAt == nil && c.Status != domain.ChannelUnknown {
				t.Errorf("Get(%d): channel %+v, want a status and observed_at", listed.ID, c)
			}
			c.Value, c.ObservedAt, c.Desired, c.DesiredAt, c.Status = nil, nil, nil, nil, ""
		}
		if !reflect.DeepEqual(device, listed) {
			t.Errorf("Get(%d) without values:\n%+v\nwant as listed\n%+v", listed.ID, device, listed)
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
		t.Errorf("heating_setpoint: got %+v, want 5 to 35 °C, writable", c)
	}
	_, err = h.devices.Get(ctx, h.id, 99)
	wantCode(t, "get an unknown device", err, domain.CodeNotFound)

	wantCode(
		t, "forget a device in reach", h.devices.Forget(ctx, h.id, keypad),
		domain.CodeInvalidRequest,
	)
	wantCode(t, "forget an unknown device", h.devices.Forget(ctx, h.id, 99), domain.CodeNotFound)
	if err := h.Unreachable(keypad); err != nil {
		t.Fatal(err)
	}
	if d, err := h.devices.Get(ctx, h.id, keypad); err != nil || d.Channels[0].Available {
		t.Errorf("Get of a device out of reach = %+v, %v, want unavailable", d, err)
	}
	if err := h.devices.Forget(ctx, h.id, keypad); err != nil {
		t.Error(err)
	}
	_, err = h.devices.Get(ctx, h.id, keypad)
	wantCode(t, "get a forgotten device", err, domain.CodeNotFound)
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
			t.Errorf("OpenPairing = %+v, %v, want %+v", window, err, open)
		}
	}
	_, err := h.devices.OpenPairing(ctx, h.id, &bad)
	wantCode(t, "open pairing with a bad code", err, domain.CodeInvalidRequest)
	id, err := h.Join(virtualhub.DeviceSpec{Kind: "lock"})
	if err != nil {
		t.Fatal(err)
	}
	if window, err := h.devices.OpenRemoval(ctx, h.id); err != nil || window != open {
		t.Errorf("OpenRemoval = %+v, %v, want %+v", window, err, open)
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
		t.Error("a device joined while pairing was closed")
	}
	h.RadioDown(true)
	_, err = h.devices.OpenPairing(ctx, h.id, nil)
	wantCode(t, "open pairing without the radio", err, domain.CodeHubUnavailable)
	_, err = h.devices.OpenRemoval(ctx, h.id)
	wantCode(t, "open removal without the radio", err, domain.CodeHubUnavailable)
}
