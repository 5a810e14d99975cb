package contract

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/test/harness"
)

// channel is a channel of a single device and of a command's answer.
type channel struct {
	Key        string
	Endpoint   int64
	Value      json.RawMessage
	ObservedAt *string `json:"observed_at"`
	Desired    json.RawMessage
	DesiredAt  *string `json:"desired_at"`
	Status     string
	Available  bool
}

// getChannel reads one channel of a device.
func getChannel(
	client *harness.Tenant, hub string, device int64, key string, endpoint int64,
) channel {
	client.T.Helper()
	var got struct{ Channels []channel }
	client.Get(devicePath(hub, device)).JSON(client.T, &got)
	for _, c := range got.Channels {
		if c.Key == key && c.Endpoint == endpoint {
			return c
		}
	}
	client.T.Fatalf(
		"device %d of %s: channel %s at endpoint %d: not found", device, hub, key, endpoint,
	)
	return channel{}
}

func devicePath(hub string, device int64) string {
	return fmt.Sprintf("/hubs/%s/devices/%d", hub, device)
}

// channelKeys has the contract's "Channel keys", and whether each is writable. The client checks the
// values of each.
var channelKeys = map[string]bool{
	"lock": true, "barrier": true, "switch": true, "level": true, "position": true, "color": true,
	"mode": true, "heating_setpoint": true, "cooling_setpoint": true, "fan_mode": true,
	"local_protection": true, "operating_state": false, "fan_state": false, "temperature": false,
	"humidity": false, "luminance": false, "co2": false, "contact": false, "motion": false,
	"leak": false, "smoke": false, "co": false, "heat": false, "tamper": false, "battery": false,
	"energy": false, "power": false, "voltage": false, "current": false, "water": false,
	"gas": false, "alarm": false, "scene": false,
}

// devices tests "Device", "Channel", "Channel keys", and reads of devices.
func devices(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Devices")
	hub := c.VirtualHub(tenant, virtualhub.Config{}) // the demo devices have every channel key
	path := "/hubs/" + hub.ID() + "/devices"

	t.Run("list", func(t *testing.T) {
		// "200 {data: [Device]} with channels lacking values and status (including room)".
		list := tenant.For(t).Get(path).Object(t)
		all := data(t, list)
		if len(all) != len(virtualhub.DemoDevices()) {
			t.Errorf("got %d devices, want %d", len(all), len(virtualhub.DemoDevices()))
		}
		for i, d := range all {
			if d["id"] != float64(i+1) || d["name"] != virtualhub.DemoDevices()[i].Name || d["room"] != nil {
				t.Errorf(
					"device %d: got %v, want the name %s and no room", i+1, d,
					virtualhub.DemoDevices()[i].Name,
				)
			}
		}
	})

	t.Run("single", func(t *testing.T) {
		// "200 Device with every channel carrying value, observed_at, desired, desired_at, status".
		client := tenant.For(t)
		seen := map[string]bool{}
		for _, id := range hub.DeviceIDs() {
			d := client.Get(devicePath(hub.ID(), id)).Object(t)
			for _, item := range d["channels"].([]any) {
				ch := item.(map[string]any)
				key, _ := ch["key"].(string)
				seen[key] = true
				writable, ok := channelKeys[key]
				if !ok {
					t.Errorf("channel key %q: not in the contract", key)
					continue
				}
				// "kind: equals the key in every case given"; "unit: % for battery; null for lock";
				// "empty object by default; for heating_setpoint and cooling_setpoint holds min and
				// max".
				if ch["kind"] != key || ch["writable"] != writable ||
					ch["available"] != true ||
					ch["readable"] != true {
					t.Errorf(
						"channel: got %v, want it available, readable, writable: %v", ch,
						writable,
					)
				}
				if key == "battery" && ch["unit"] != "%" || key == "lock" && ch["unit"] != nil {
					t.Errorf("unit of %s: got %v", key, ch["unit"])
				}
				capabilities := ch["capabilities"].(map[string]any)
				bounded := key == "heating_setpoint" || key == "cooling_setpoint"
				if (capabilities["min"] != nil && capabilities["max"] != nil) != bounded {
					t.Errorf("capabilities of %s: got %v", key, capabilities)
				}
				if ch["value"] == nil {
					// "unknown (nothing asked, nothing reported yet)".
					if ch["observed_at"] != nil || ch["status"] != "unknown" {
						t.Errorf("channel without a report: got %v", ch)
					}
				} else {
					// "synchronized (the device reports what was asked, or nothing was asked)".
					if ch["status"] != "synchronized" {
						t.Errorf("reported channel: got %v, want it synchronized", ch)
					}
				}
				if ch["desired"] != nil || ch["desired_at"] != nil {
					t.Errorf("channel without a command: got %v", ch)
				}
			}
		}
		for key := range channelKeys {
			if !seen[key] {
				t.Errorf("channel %s: no device has it", key)
			}
		}
	})

	t.Run("endpoints", func(t *testing.T) {
		// "0 unless the device has several of one channel (for example a two-gang switch has
		// endpoints 1 and 2)".
		var got struct{ Channels []channel }
		tenant.For(t).
			Must(http.MethodGet, devicePath(hub.ID(), 4), nil, http.StatusOK).
			JSON(t, &got)
		var ends []int64
		for _, ch := range got.Channels {
			if ch.Key == "switch" {
				ends = append(ends, ch.Endpoint)
			}
		}
		if !slices.Equal(ends, []int64{1, 2}) {
			t.Errorf("got endpoints %v, want 1 and 2", ends)
		}
	})

	t.Run("no such device", func(t *testing.T) {
		client := tenant.For(t)
		for _, id := range []string{
			"999", "0", "-1", "x", "1.5", "1e3", "99999999999999999999", "%31%00", "01x",
		} {
			client.Rejected(http.MethodGet, path+"/"+id, nil, "not_found")
			client.Rejected(http.MethodPatch, path+"/"+id, `{"name":"x"}`, "not_found")
			client.Rejected(http.MethodDelete, path+"/"+id, nil, "not_found")
			client.Rejected(
				http.MethodPost, path+"/"+id+"/commands", `{"key":"lock","value":true}`,
				"not_found",
			)
		}
	})

	t.Run("read live", func(t *testing.T) {
		// "Reads of devices and channels … are asked of the hub live"; "value: only what the device
		// last reported".
		client := tenant.For(t)
		for _, value := range []float64{19.5, 20, 20.5} {
			harness.Must(t, hub.Report(11, virtualhub.ChannelRef{Key: "temperature"}, value))
			if got := getChannel(client, hub.ID(), 11, "temperature", 0); string(
				got.Value,
			) != fmt.Sprint(value) {
				t.Errorf("got %s, want %v as reported", got.Value, value)
			}
		}
	})

	t.Run("availability", func(t *testing.T) {
		// The table "Device availability": "radio can no longer reach the device",
		// device.unavailable; and back.
		client := tenant.For(t)
		head := client.Head(hub.ID())
		harness.Must(t, hub.Unreachable(7))
		unavailable := client.AwaitType(hub.ID(), head, "device.unavailable", 7)
		if string(unavailable.Data) != "{}" {
			t.Errorf("device.unavailable: got data %s, want {}", unavailable.Data)
		}
		if getChannel(client, hub.ID(), 7, "leak", 0).Available {
			t.Error("unreachable device: got available")
		}
		for _, d := range data(t, client.Get(path).Object(t)) {
			for _, item := range d["channels"].([]any) {
				if available := item.(map[string]any)["available"]; available != (d["id"] != 7.0) {
					t.Errorf("list: device %v: got available %v", d["id"], available)
				}
			}
		}
		harness.Must(t, hub.Reachable(7))
		client.AwaitType(hub.ID(), unavailable.Cursor, "device.available", 7)
		if !getChannel(client, hub.ID(), 7, "leak", 0).Available {
			t.Error("reachable device: got not available")
		}
	})

	t.Run("forget", func(t *testing.T) {
		// "204; forgets a device the hub can no longer reach; 400 when the device is still on the
		// hub's network; … a device.forgotten event follows".
		client := tenant.For(t)
		head := client.Head(hub.ID())
		client.Rejected(http.MethodDelete, devicePath(hub.ID(), 15), nil, "invalid_request")
		harness.Must(t, hub.Unreachable(15))
		client.Delete(devicePath(hub.ID(), 15))
		forgotten := client.AwaitType(hub.ID(), head, "device.forgotten", 15)
		if string(forgotten.Data) != `{"name":"Water"}` {
			t.Errorf("data %s", forgotten.Data)
		}
		client.Rejected(http.MethodGet, devicePath(hub.ID(), 15), nil, "not_found")
		client.Rejected(http.MethodDelete, devicePath(hub.ID(), 15), nil, "not_found")
	})
}
