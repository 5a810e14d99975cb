package contract

import (
	"net/http"
	"testing"
	"time"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// deviceErrors tests the answers of live calls when the hub fails: "404, 502 hub_error, 503
// hub_offline or hub_unavailable, and 504 hub_timeout".
func deviceErrors(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Device errors")

	t.Run("offline", func(t *testing.T) {
		// "503 hub_offline: the hub is not connected; nothing was done". The answer must not wait
		// for the hub.
		client := tenant.For(t)
		hub := c.For(t).VirtualHub(tenant, virtualhub.Config{})
		hub.Offline(true)
		streamstest.Eventually(t, "status offline",
			func() bool { return getHub(client.Client, hub.ID()).Connection.Status == "offline" },
		)
		for _, e := range endpoints {
			if !e.live {
				continue
			}
			began := time.Now()
			client.Rejected(
				e.method, e.at(hub.ID()), e.sent(), http.StatusServiceUnavailable, "hub_offline",
			)
			// a connected hub has 10 s to answer
			if took := time.Since(began); took > 8*time.Second {
				t.Errorf("%s: answered after %s, want at once", e, took)
			}
		}
		head := client.Head(hub.ID())
		// "Commands are never queued for an offline hub."
		hub.Offline(false)
		harness.Connected(t, hub)
		client.Await(
			hub.ID(), head, "hub.connected",
			func(e harness.Event) bool { return e.Type == "hub.connected" },
		)
		streamstest.Eventually(t, "the hub answers again", func() bool {
			answer, err := client.Try(http.MethodGet, devicePath(hub.ID(), 1), nil)
			return err == nil && answer.Status == http.StatusOK
		})
		if ch := getChannel(client, hub.ID(), 1, "lock", 0); string(ch.Desired) != "null" {
			t.Errorf("command to an offline hub: got %+v, want nothing desired", ch)
		}
	})

	t.Run("hub unavailable", func(t *testing.T) {
		// "503 hub_unavailable: hub connected but cannot act now (its radio is down, or it does not
		// know the time yet)".
		client := tenant.For(t)
		hub := c.For(t).VirtualHub(tenant, virtualhub.Config{})
		for _, fault := range []func(bool){hub.RadioDown, hub.ClockUnknown} {
			fault(true)
			for _, e := range endpoints {
				if e.method == http.MethodPost && e.live {
					client.Rejected(
						e.method, e.at(hub.ID()), e.sent(), http.StatusServiceUnavailable,
						"hub_unavailable",
					)
				}
			}
			fault(false)
		}
	})

	t.Run("invalid answers of the hub", func(t *testing.T) {
		// "502 hub_error: the hub failed"; hub link, section 4: "any other type is a hub_error",
		// "An answer that is no such object is a hub_error".
		client := tenant.For(t)
		hub := c.For(t).RawHub()
		hub.BreaksProtocol()
		answers := make(chan harness.Response, 1)
		hub.OnRequest(func(harness.Request) harness.Response { return <-answers })
		hub.Enroll()
		hub.GoOnline()
		client.Add(hub.Serial)
		errorOf := func(kind string) harness.Response {
			return harness.Response{Error: &harness.LinkError{Type: kind, Message: "failed"}}
		}
		device := func(change func(d, ch map[string]any)) harness.Response {
			ch := map[string]any{
				"key": "lock", "endpoint": 0, "kind": "lock", "unit": nil, "readable": true,
				"writable": true, "capabilities": map[string]any{},
				"available": true, "value": true, "observed_at": "2026-01-02T03:04:05.123456Z",
				"desired": nil, "desired_at": nil, "status": "synchronized",
			}
			d := map[string]any{
				"id":           1,
				"name":         "Door",
				"manufacturer": "M",
				"model":        "X",
				"channels":     []any{ch},
			}
			change(d, ch)
			return harness.Response{Result: map[string]any{"device": d}}
		}
		for what, c := range map[string]struct {
			answer harness.Response
			status int
			kind   string
		}{
			"not found": {errorOf("not_found"), http.StatusNotFound, "not_found"},
			"unavailable": {
				errorOf("hub_unavailable"), http.StatusServiceUnavailable, "hub_unavailable",
			},
			"an unknown type": {errorOf("on_fire"), http.StatusBadGateway, "hub_error"},
			"a type of the API": {
				errorOf("unauthenticated"), http.StatusBadGateway, "hub_error",
			},
			"another type of the API": {
				errorOf("rate_limited"), http.StatusBadGateway, "hub_error",
			},
			"an empty type": {errorOf(""), http.StatusBadGateway, "hub_error"},
			"no result":     {harness.Response{}, http.StatusBadGateway, "hub_error"},
			"an empty result": {
				harness.Response{Result: map[string]any{}}, http.StatusBadGateway, "hub_error",
			},
			"a list": {
				harness.Response{Result: []int{1}}, http.StatusBadGateway, "hub_error",
			},
			"a device that is no object": {
				harness.Response{Result: map[string]any{"device": "lock"}}, http.StatusBadGateway,
				"hub_error",
			},
			"no channels": {
				device(func(d, _ map[string]any) { delete(d, "channels") }), http.StatusBadGateway,
				"hub_error",
			},
			"a name that is no text": {
				device(func(d, _ map[string]any) { d["name"] = 7 }), http.StatusBadGateway,
				"hub_error",
			},
			"an unknown status": {
				device(func(_, ch map[string]any) { ch["status"] = "tired" }),
				http.StatusBadGateway, "hub_error",
			},
			"no key": {
				device(func(_, ch map[string]any) { delete(ch, "key") }), http.StatusBadGateway,
				"hub_error",
			},
		} {
			answers <- c.answer
			answer := client.Must(http.MethodGet, devicePath(hub.ID, 1), nil, c.status)
			if apiError := harness.CheckAPIError(t, answer); apiError.Type != c.kind {
				t.Errorf("%s: got %s, want the type %s", what, answer.Body, c.kind)
			}
		}
		// An empty list is valid. A response without a list is not.
		answers <- harness.Response{Result: map[string]any{"devices": []any{}}}
		list := client.Must(http.MethodGet, "/hubs/"+hub.ID+"/devices", nil, http.StatusOK)
		if !sameJSON(list.Body, []byte(`{"data":[]}`)) {
			t.Errorf("hub without devices: got %s, want an empty list", list.Body)
		}
		answers <- harness.Response{Result: map[string]any{"devices": nil}}
		client.Rejected(
			http.MethodGet, "/hubs/"+hub.ID+"/devices", nil, http.StatusBadGateway, "hub_error",
		)
		answers <- harness.Response{Raw: []byte(`not JSON`)}
		client.Rejected(
			http.MethodGet, "/hubs/"+hub.ID+"/devices", nil, http.StatusBadGateway, "hub_error",
		)
		// Valid fields pass, and fields outside the contract are removed.
		answers <- device(func(d, ch map[string]any) {
			d["secret"], d["room"], ch["mood"] = "x", "Hall", "fine"
		})
		got := client.Must(http.MethodGet, devicePath(hub.ID, 1), nil, http.StatusOK).Object(t)
		hasExactly(t, "device", got, "id", "name", "manufacturer", "model", "room", "channels")
		hasExactly(
			t, "channel", got["channels"].([]any)[0].(map[string]any), "key", "endpoint", "kind",
			"unit", "readable", "writable", "capabilities", "available", "value", "observed_at",
			"desired", "desired_at", "status",
		)
		if got["room"] != nil {
			t.Errorf("room: got %v, want null: rooms are set in the API only", got["room"])
		}
	})
}
