package virtualhub_test

import (
	"testing"

	"hubcloud/hubbridge/protocol"
	"hubcloud/streams/streamstest"
)

func TestRequests(t *testing.T) {
	t.Parallel()
	c := startCloud(t)
	t.Run("forget", func(t *testing.T) {
		h := c.requestHub(t, "hub-meth-0000-0002")
		rejected(t, c.call(t, h, protocol.MethodDevicesForget, params{"device_id": 99}), "not_found")
		rejected(t, c.call(t, h, protocol.MethodDevicesForget, params{"device_id": keypad}), "invalid_request")
		must(t, h.Unreachable(keypad))
		if got := string(c.call(t, h, protocol.MethodDevicesForget, params{
			"device_id": keypad,
		}).Result); got != "{}" {
			t.Errorf("answer %s", got)
		}
		rejected(t, c.call(t, h, protocol.MethodDevicesForget, params{"device_id": keypad}), "not_found")
		streamstest.Eventually(t, "events stored",
			func() bool { return len(c.of(h, "device.unavailable", "device.forgotten")) == 2 })
		e := c.of(h, "device.forgotten")[0]
		if string(e.Data) != `{"name":"Hall keypad"}` || *e.DeviceID != keypad {
			t.Errorf("unexpected event %+v", e)
		}
	})
}
