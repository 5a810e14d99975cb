package virtualhub_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/hubbridge/protocol"
	"hubcloud/streams/streamstest"
)

func TestWindows(t *testing.T) {
	t.Parallel()
	c := startCloud(t)
	t.Run("pairing", func(t *testing.T) {
		h := c.requestHub(t, "hub-meth-0000-0008")
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
			r = c.command(t, h, "p"+side.Name+string(rune('a'+i)), int(id), "lock", false)
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
		if e := c.of(h)[0]; e.Type != "device.added" || *e.DeviceID != 18 ||
			string(e.Data) != `{"name":"Side door","secure":false}` {
			t.Errorf("unexpected event %+v", e)
		}
	})

	t.Run("removal", func(t *testing.T) {
		h := c.requestHub(t, "hub-meth-0000-0009")
		if err := h.Press(keypad); !errors.Is(err, virtualhub.ErrNoWindow) {
			t.Errorf("without a window: %v, want ErrNoWindow", err)
		}
		opened := c.call(t, h, protocol.MethodRemovalOpen, params{})
		if got := string(opened.Result); got != `{"status":"open","expires_in":120}` {
			t.Errorf("removal.open = %s %+v, want an open window", got, opened.Error)
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
	added, gone := c.of(h, "device.added")[0], c.of(h, "device.forgotten")[0]
	if *added.DeviceID != *gone.DeviceID {
		t.Errorf("device %d left, want %d, which joined last", *gone.DeviceID, *added.DeviceID)
	}
}
