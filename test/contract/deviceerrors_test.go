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
		awaitStatus(client.Client, hub.ID(), "offline")
		for _, e := range endpoints {
			if !e.live {
				continue
			}
			began := time.Now()
			client.Rejected(e.method, e.at(hub.ID()), e.sent(), "hub_offline")
			// a connected hub has 10 s to answer
			if took := time.Since(began); took > 8*time.Second {
				t.Errorf("%s: answered after %s, want at once", e, took)
			}
		}
		head := client.Head(hub.ID())
		// "Commands are never queued for an offline hub."
		hub.Offline(false)
		harness.Connected(t, hub)
		client.AwaitType(hub.ID(), head, "hub.connected")
		streamstest.Eventually(t, "the hub answers again", func() bool {
			answer, err := client.Try(http.MethodGet, devicePath(hub.ID(), 1), nil)
			return err == nil && answer.Status == http.StatusOK
		})
		if ch := getChannel(client, hub.ID(), 1, "lock", 0); string(ch.Desired) != "null" {
			t.Errorf("command to an offline hub: got %+v, want nothing desired", ch)
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
			kind   string
		}{
			"not found":              {errorOf("not_found"), "not_found"},
			"an unknown type":        {errorOf("on_fire"), "hub_error"},
			"a type of the API":      {errorOf("unauthenticated"), "hub_error"},
			"no result":              {harness.Response{}, "hub_error"},
			"a name that is no text": {device(func(d, _ map[string]any) { d["name"] = 7 }), "hub_error"},
		} {
			t.Log(what)
			answers <- c.answer
			client.Rejected(http.MethodGet, devicePath(hub.ID, 1), nil, c.kind)
		}
		// An empty list is valid. A response without a list is not.
		answers <- harness.Response{Result: map[string]any{"devices": []any{}}}
		list := client.Get("/hubs/" + hub.ID + "/devices")
		if !sameJSON(list.Body, []byte(`{"data":[]}`)) {
			t.Errorf("hub without devices: got %s, want an empty list", list.Body)
		}
		answers <- harness.Response{Result: map[string]any{"devices": nil}}
		client.Rejected(http.MethodGet, "/hubs/"+hub.ID+"/devices", nil, "hub_error")
		answers <- harness.Response{Raw: []byte(`not JSON`)}
		client.Rejected(http.MethodGet, "/hubs/"+hub.ID+"/devices", nil, "hub_error")
		// Valid fields pass, and fields outside the contract are removed.
		answers <- device(func(d, ch map[string]any) {
			d["secret"], d["room"], ch["mood"] = "x", "Hall", "fine"
		})
		got := client.Get(devicePath(hub.ID, 1)).Object(t)
		if got["room"] != nil {
			t.Errorf("room: got %v, want null: rooms are set in the API only", got["room"])
		}
	})
}
