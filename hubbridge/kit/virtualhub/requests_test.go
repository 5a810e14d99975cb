package virtualhub_test

import (
	"testing"
	"time"

	"hubcloud/hubbridge/protocol"
	"hubcloud/streams/streamstest"
)

func TestRequests(t *testing.T) {
	t.Parallel()
	c := startCloud(t)
	t.Run("devices", func(t *testing.T) {
		h := c.requestHub(t, "hub-meth-0000-0001")
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
		h := c.requestHub(t, "hub-meth-0000-0002")
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

	t.Run("concurrently", func(t *testing.T) {
		h := c.requestHub(t, "hub-meth-0000-0011")
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
