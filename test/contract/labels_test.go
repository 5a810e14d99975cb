package contract

import (
	"net/http"
	"strings"
	"testing"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// label is the name and room of a device in any answer.
type label struct {
	ID         int64
	Name, Room *string
}

// labelOf reads a device's label.
func labelOf(client *harness.Tenant, hub string, device int64) (name, room string) {
	client.T.Helper()
	var single label
	client.Get(devicePath(hub, device)).JSON(client.T, &single)
	return text(single.Name), text(single.Room)
}

// isLabeled checks a device's label, in the device and in the list.
func isLabeled(client *harness.Tenant, hub string, device int64, name, room string) {
	client.T.Helper()
	if n, r := labelOf(client, hub, device); n != name || r != room {
		client.T.Errorf("device %d: got %q in %q, want %q in %q", device, n, r, name, room)
	}
	var list struct{ Data []label }
	client.Get("/hubs/"+hub+"/devices").JSON(client.T, &list)
	for _, d := range list.Data {
		if d.ID == device && (text(d.Name) != name || text(d.Room) != room) {
			client.T.Errorf(
				"device %d in the list: got %q in %q, want %q in %q", device, text(d.Name),
				text(d.Room), name, room,
			)
		}
	}
}

// text returns the text that s points to, or <null>.
func text(s *string) string {
	if s == nil {
		return "<null>"
	}
	return *s
}

// deviceLabels tests the contract's rules for a device's name and room.
func deviceLabels(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Labels")
	devices := []virtualhub.DeviceSpec{
		{Kind: "lock", Name: "Front door"},
		{Kind: "dimmer", Name: "Lamp"},
	}
	expectLabel := func(t *testing.T, hub string, device int64, name, room string) {
		t.Helper()
		isLabeled(tenant.For(t), hub, device, name, room)
	}

	t.Run("set and clear", func(t *testing.T) {
		// "body name (string or null), room (string or null); either or both; null clears"; "200
		// the device's name and room"; "name: what the hub reports unless set through the API";
		// "room: set only through the API".
		client := tenant.For(t)
		hub := c.For(t).VirtualHub(tenant, virtualhub.Config{Devices: devices})
		expectLabel(t, hub.ID(), 1, "Front door", "<null>")
		for _, step := range []struct{ body, name, room string }{
			{`{"name":" Main entrance "}`, "Main entrance", "<null>"},
			{`{"room":"Lobby"}`, "Main entrance", "Lobby"},
			{`{"name":"Entrance","room":"Hall"}`, "Entrance", "Hall"},
			{`{"room":null}`, "Entrance", "<null>"},
			{`{"room":"Hall"}`, "Entrance", "Hall"},
			{`{"name":null}`, "Front door", "Hall"},
			{`{"name":null,"room":null}`, "Front door", "<null>"},
			{`{"name":"Café «1»","room":"Süd 🏢"}`, "Café «1»", "Süd 🏢"},
		} {
			answer := client.Patch(devicePath(hub.ID(), 1), step.body).Object(t)
			want := map[string]any{"id": 1.0, "name": step.name, "room": any(step.room)}
			if step.room == "<null>" {
				want["room"] = nil
			}
			if answer["id"] != want["id"] || answer["name"] != want["name"] ||
				answer["room"] != want["room"] {
				t.Errorf("%s: got %v, want %v", step.body, answer, want)
			}
			expectLabel(t, hub.ID(), 1, step.name, step.room)
		}
		expectLabel(t, hub.ID(), 2, "Lamp", "<null>")
		for _, body := range []string{
			``, `{}`, `[]`, `{"name":""}`, `{"name":" "}`, `{"room":""}`, `{"name":7}`,
			`{"room":true}`, `{"color":"red"}`, `{"name":"a\nb"}`,
			`{"name":"` + strings.Repeat("x", 201) + `"}`,
			`{"room":"` + strings.Repeat("x", 201) + `"}`, `{"name":"x"}x`,
			`{"name":"x","room":7}`,
		} {
			client.Rejected(http.MethodPatch, devicePath(hub.ID(), 1), body, "invalid_request")
		}
		expectLabel(t, hub.ID(), 1, "Café «1»", "Süd 🏢")
	})

	t.Run("kept through a restart of the hub and a new name from it", func(t *testing.T) {
		// "name and room are kept by the service, not by the hub, and survive a hub restart."
		client := tenant.For(t)
		cfg := virtualhub.Config{Devices: devices}
		cfg.Dir = t.TempDir()
		hub := c.For(t).VirtualHub(tenant, cfg)
		client.Patch(devicePath(hub.ID(), 1), `{"name":"Entrance","room":"Hall"}`)
		client.Patch(devicePath(hub.ID(), 2), `{"room":"Hall"}`)
		head := client.Head(hub.ID())
		hub.Restart()
		client.AwaitType(hub.ID(), head, "hub.connected")
		harness.Connected(t, hub)
		expectLabel(t, hub.ID(), 1, "Entrance", "Hall")
		harness.Must(t, hub.Rename(1, "Renamed by the hub"))
		harness.Must(t, hub.Rename(2, "Renamed too", virtualhub.ChannelRef{Key: "switch"}))
		updated := client.AwaitType(hub.ID(), head, "device.updated", 2)
		// "{name, removed_channels: array}".
		if !sameJSON(
			updated.Data,
			[]byte(`{"name":"Renamed too","removed_channels":[{"key":"switch","endpoint":0}]}`),
		) {
			t.Errorf("device.updated: got data %s", updated.Data)
		}
		expectLabel(t, hub.ID(), 1, "Entrance", "Hall")
		expectLabel(t, hub.ID(), 2, "Renamed too", "Hall")
		client.Patch(devicePath(hub.ID(), 1), `{"name":null}`)
		expectLabel(t, hub.ID(), 1, "Renamed by the hub", "Hall")
	})

	t.Run("deleted with the device", func(t *testing.T) {
		// Hub link, section 4: "When a hub reports device.forgotten, the cloud forgets the name and
		// room that were set for that device ID."
		client := tenant.For(t)
		hub := c.For(t).RawHub()
		hub.OnRequest(twoLocks)
		hub.Enroll()
		hub.GoOnline()
		client.Add(hub.Serial)
		for _, device := range []int64{1, 2} {
			client.Patch(devicePath(hub.ID, device), `{"name":"Set","room":"Hall"}`)
		}
		forgotten := harness.Numbered(1)
		forgotten["type"], forgotten["device_id"] = "device.forgotten", 2
		forgotten["data"] = map[string]any{"name": "Lock 2"}
		hub.Send("events", map[string]any{"log": "log-1", "events": []any{forgotten}})
		hub.WaitAck("log-1", 1)
		streamstest.Eventually(t, "the label of a forgotten device is deleted",
			func() bool {
				name, room := labelOf(client, hub.ID, 2)
				return name == "Lock 2" && room == "<null>"
			},
		)
		expectLabel(t, hub.ID, 2, "Lock 2", "<null>")
		expectLabel(t, hub.ID, 1, "Set", "Hall")
		// A repeat of the event does not remove a label that was set since.
		client.Patch(devicePath(hub.ID, 2), `{"name":"Set again"}`)
		hub.Send("events", map[string]any{"log": "log-1", "events": []any{forgotten}})
		hub.EventsFrom("log-1", 2, 2)
		hub.WaitAck("log-1", 2)
		expectLabel(t, hub.ID, 2, "Set again", "<null>")
	})

	t.Run("deleted by a reset of the hub", func(t *testing.T) {
		// Hub link, section 4: "another log than before: the hub was reset. The cloud … forgets the
		// names and rooms of its devices".
		client := tenant.For(t)
		hub := c.For(t).VirtualHub(tenant, virtualhub.Config{Devices: devices})
		client.Patch(devicePath(hub.ID(), 1), `{"name":"Entrance","room":"Hall"}`)
		before := client.Head(hub.ID())
		harness.Must(t, hub.FactoryReset())
		streamstest.Eventually(t, "410 for a cursor from before the reset", func() bool {
			answer, err := client.Try(
				http.MethodGet, "/hubs/"+hub.ID()+"/events?after="+before, nil,
			)
			return err == nil && answer.Status == http.StatusGone
		})
		harness.Connected(t, hub)
		streamstest.Eventually(t, "the labels of a reset hub are deleted", func() bool {
			answer, err := client.Try(http.MethodGet, devicePath(hub.ID(), 1), nil)
			if err != nil || answer.Status != http.StatusOK {
				return false
			}
			name, room := labelOf(client, hub.ID(), 1)
			return name == "Front door" && room == "<null>"
		})
		expectLabel(t, hub.ID(), 1, "Front door", "<null>")
	})

	t.Run("kept by the hub's move to another site", func(t *testing.T) {
		client := tenant.For(t)
		hub := c.For(t).VirtualHub(tenant, virtualhub.Config{Devices: devices})
		client.Patch(devicePath(hub.ID(), 1), `{"name":"Entrance","room":"Hall"}`)
		client.Patch("/hubs/"+hub.ID(), map[string]string{"site_id": client.NewSite("Elsewhere")})
		expectLabel(t, hub.ID(), 1, "Entrance", "Hall")
	})
}

// twoLocks answers requests as a hub with two locks does.
func twoLocks(request harness.Request) harness.Response {
	lock := func(id int64, full bool) map[string]any {
		ch := map[string]any{
			"key": "lock", "endpoint": 0, "kind": "lock", "unit": nil, "readable": true,
			"writable": true, "capabilities": map[string]any{}, "available": true,
		}
		if full {
			ch["value"] = true
			ch["observed_at"] = "2026-01-02T03:04:05.123456Z"
			ch["desired"] = nil
			ch["desired_at"] = nil
			ch["status"] = "synchronized"
		}
		return map[string]any{
			"id":           id,
			"name":         map[int64]string{1: "Lock 1", 2: "Lock 2"}[id],
			"manufacturer": "M",
			"model":        "X",
			"channels":     []any{ch},
		}
	}
	switch request.Method {
	case "devices.list":
		return harness.Response{
			Result: map[string]any{"devices": []any{lock(1, false), lock(2, false)}},
		}
	case "devices.get":
		var params struct {
			DeviceID int64 `json:"device_id"`
		}
		if request.DecodeParams(&params); params.DeviceID == 1 || params.DeviceID == 2 {
			return harness.Response{Result: map[string]any{"device": lock(params.DeviceID, true)}}
		}
		return harness.Response{
			Error: &harness.LinkError{Type: "not_found", Message: "no such device"},
		}
	}
	return harness.Response{
		Error: &harness.LinkError{Type: "unknown_method", Message: request.Method},
	}
}
