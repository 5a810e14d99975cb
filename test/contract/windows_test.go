package contract

import (
	"errors"
	"net/http"
	"testing"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/test/harness"
)

// windows tests "Pairing window and removal window (per hub)" and its endpoints.
func windows(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Windows")
	devices := []virtualhub.DeviceSpec{{Kind: "switch"}, {Kind: "leak_sensor", Name: "Drop"}}

	opened := func(t *testing.T, answer harness.Answer) {
		t.Helper()
		// "202 {status: string ('open'), expires_in: integer (seconds, 120)}".
		got := answer.Object(t)
		if got["status"] != "open" || got["expires_in"] != 120.0 {
			t.Errorf("window: got %v, want open for 120 s", got)
		}
	}
	closed := func(t *testing.T, err error) {
		t.Helper()
		if !errors.Is(err, virtualhub.ErrNoWindow) {
			t.Errorf("want the hub's window closed: %v", err)
		}
	}

	t.Run("pairing", func(t *testing.T) {
		// "closed, POST /hubs/{hub_id}/pairing: open for 120 seconds, one device"; "device joins:
		// closed, device.added event with the new device_id".
		client := tenant.For(t)
		hub := c.For(t).VirtualHub(tenant, virtualhub.Config{Devices: devices})
		path := "/hubs/" + hub.ID() + "/pairing"
		join := func() (int64, error) {
			return hub.Join(virtualhub.DeviceSpec{
				Kind: "lock", Name: "Side door",
			})
		}
		_, err := join()
		closed(t, err)
		head := client.Head(hub.ID())
		opened(t, client.Command(path, `{"setup_code":"12345"}`))
		id, err := join()
		harness.Must(t, err)
		added := client.AwaitType(hub.ID(), head, "device.added", id)
		if !sameJSON(added.Data, []byte(`{"name":"Side door","secure":true}`)) {
			t.Errorf("data %s", added.Data)
		}
		_, err = join()
		closed(t, err)
		// "locks need it to join securely enough to be driven": this lock joined with a code.
		client.Command(devicePath(hub.ID(), id)+"/commands", `{"key":"lock","value":false}`)

		// "optional body": a lock that joins without a code is not driven.
		for _, body := range []any{nil, `{}`, ``} {
			opened(t, client.Command(path, body))
			insecure, err := join()
			harness.Must(t, err)
			client.Rejected(
				http.MethodPost, devicePath(hub.ID(), insecure)+"/commands",
				`{"key":"lock","value":false}`, "command_refused",
			)
		}

		// "open (pairing), DELETE /hubs/{hub_id}/pairing: closed".
		opened(t, client.Command(path, nil))
		client.Delete(path)
		_, err = join()
		closed(t, err)
		client.Delete(path)
	})

	t.Run("setup code", func(t *testing.T) {
		// "the 5-digit PIN, DSK or QR text printed on the device".
		client := tenant.For(t)
		hub := c.For(t).VirtualHub(tenant, virtualhub.Config{Devices: devices})
		path := "/hubs/" + hub.ID() + "/pairing"
		for _, code := range []string{
			"12345", "34028-23669-20938-46346-33746-07431-56821-14553",
			"900132782003515253545541424344453132333435212223242500100435301537022065520001000000300578",
			"MT:Y.K9042C00KA0648G00",
		} {
			opened(
				t,
				client.Command(path, map[string]string{"setup_code": code}),
			)
		}
		for _, body := range []string{
			`{"setup_code":"1234"}`, `{"setup_code":"hello"}`, `{"setup_code":""}`,
			`{"setup_code":12345}`, `{"code":"12345"}`, `[]`, `{"setup_code":`, `"12345"`,
		} {
			client.Rejected(http.MethodPost, path, body, "invalid_request")
		}
	})

	t.Run("removal", func(t *testing.T) {
		// "closed, POST /hubs/{hub_id}/removal: open for two minutes"; "button pressed on the
		// device: closed, device.forgotten event".
		client := tenant.For(t)
		hub := c.For(t).VirtualHub(tenant, virtualhub.Config{Devices: devices})
		path := "/hubs/" + hub.ID() + "/removal"
		client.Patch(devicePath(hub.ID(), 2), `{"name":"Set through the API"}`)
		closed(t, hub.Press(2))
		head := client.Head(hub.ID())
		opened(t, client.Command(path, nil))
		harness.Must(t, hub.Press(2))
		forgotten := client.AwaitType(hub.ID(), head, "device.forgotten", 2)
		if !sameJSON(forgotten.Data, []byte(`{"name":"Drop"}`)) {
			t.Errorf("data %s", forgotten.Data)
		}
		client.Rejected(http.MethodGet, devicePath(hub.ID(), 2), nil, "not_found")
		closed(t, hub.Press(1))
		opened(t, client.Command(path, nil))
		client.Delete(path)
		closed(t, hub.Press(1))
		client.Delete(path)
		// "Request: none": a body is ignored.
		opened(t, client.Command(path, `{}`))
		client.Must(http.MethodDelete, path, `{}`, http.StatusNoContent)
	})
}
