package contract

import (
	"errors"
	"net/http"
	"testing"
	"time"

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
		hasExactly(t, "window", got, "status", "expires_in")
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
		opened(t, client.Must(http.MethodPost, path, `{"setup_code":"12345"}`, http.StatusAccepted))
		id, err := join()
		if err != nil {
			t.Fatal(err)
		}
		added := client.Await(
			hub.ID(), head, "device.added",
			func(e harness.Event) bool { return e.About("device.added", id) },
		)
		if !sameJSON(added.Data, []byte(`{"name":"Side door","secure":true}`)) {
			t.Errorf("data %s", added.Data)
		}
		_, err = join()
		closed(t, err)
		// "locks need it to join securely enough to be driven": this lock joined with a code.
		client.Must(
			http.MethodPost, devicePath(hub.ID(), id)+"/commands", `{"key":"lock","value":false}`,
			http.StatusAccepted,
		)

		// "optional body": a lock that joins without a code is not driven.
		for _, body := range []any{nil, `{}`, ``} {
			opened(t, client.Must(http.MethodPost, path, body, http.StatusAccepted))
			insecure, err := join()
			if err != nil {
				t.Fatal(err)
			}
			client.Rejected(
				http.MethodPost, devicePath(hub.ID(), insecure)+"/commands",
				`{"key":"lock","value":false}`, http.StatusUnprocessableEntity, "command_refused",
			)
		}

		// "open (pairing), DELETE /hubs/{hub_id}/pairing: closed".
		opened(t, client.Must(http.MethodPost, path, nil, http.StatusAccepted))
		if answer := client.Must(http.MethodDelete, path, nil, http.StatusNoContent); len(
			answer.Body,
		) != 0 {
			t.Errorf("204: got body %s, want none", answer.Body)
		}
		_, err = join()
		closed(t, err)
		client.Must(http.MethodDelete, path, nil, http.StatusNoContent)
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
				client.Must(
					http.MethodPost, path, map[string]string{"setup_code": code},
					http.StatusAccepted,
				),
			)
		}
		for _, body := range []string{
			`{"setup_code":"1234"}`, `{"setup_code":"hello"}`, `{"setup_code":""}`,
			`{"setup_code":12345}`, `{"code":"12345"}`, `[]`, `{"setup_code":`, `"12345"`,
		} {
			client.Rejected(http.MethodPost, path, body, http.StatusBadRequest, "invalid_request")
		}
	})

	t.Run("removal", func(t *testing.T) {
		// "closed, POST /hubs/{hub_id}/removal: open for two minutes"; "button pressed on the
		// device: closed, device.forgotten event".
		client := tenant.For(t)
		hub := c.For(t).VirtualHub(tenant, virtualhub.Config{Devices: devices})
		path := "/hubs/" + hub.ID() + "/removal"
		client.Must(
			http.MethodPatch, devicePath(hub.ID(), 2), `{"name":"Set through the API"}`,
			http.StatusOK,
		)
		closed(t, hub.Press(2))
		head := client.Head(hub.ID())
		opened(t, client.Must(http.MethodPost, path, nil, http.StatusAccepted))
		if err := hub.Press(2); err != nil {
			t.Fatal(err)
		}
		forgotten := client.Await(
			hub.ID(), head, "device.forgotten",
			func(e harness.Event) bool { return e.About("device.forgotten", 2) },
		)
		if !sameJSON(forgotten.Data, []byte(`{"name":"Drop"}`)) {
			t.Errorf("data %s", forgotten.Data)
		}
		client.Rejected(
			http.MethodGet, devicePath(hub.ID(), 2), nil, http.StatusNotFound, "not_found",
		)
		closed(t, hub.Press(1))
		opened(t, client.Must(http.MethodPost, path, nil, http.StatusAccepted))
		if answer := client.Must(http.MethodDelete, path, nil, http.StatusNoContent); len(
			answer.Body,
		) != 0 {
			t.Errorf("204: got body %s, want none", answer.Body)
		}
		closed(t, hub.Press(1))
		client.Must(http.MethodDelete, path, nil, http.StatusNoContent)
		// "Request: none": a body is ignored.
		opened(t, client.Must(http.MethodPost, path, `{}`, http.StatusAccepted))
		client.Must(http.MethodDelete, path, `{}`, http.StatusNoContent)
	})

	t.Run("a window closes after its time", func(t *testing.T) {
		// "2 minutes elapse: closed". The hub's two minutes are half a second here.
		client := tenant.For(t)
		hub := c.For(t).
			VirtualHub(tenant, virtualhub.Config{
				Devices: devices, PairingWindow: 500 * time.Millisecond,
			})
		for _, kind := range []string{"pairing", "removal"} {
			got := client.Must(
				http.MethodPost, "/hubs/"+hub.ID()+"/"+kind, nil, http.StatusAccepted,
			).
				Object(t)
			if got["status"] != "open" || got["expires_in"] != 1.0 {
				t.Errorf("window of 500 ms: got %v, want open for 1 s", got)
			}
		}
		harness.Elapse(600 * time.Millisecond)
		_, err := hub.Join(virtualhub.DeviceSpec{Kind: "switch"})
		closed(t, err)
		closed(t, hub.Press(1))
	})
}
