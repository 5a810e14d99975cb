package contract

import (
	"testing"
	"time"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/test/harness"
)

// eventTypes tests the tables "Envelope" and "Types" of the API's events.
func eventTypes(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Types")

	t.Run("envelope", func(t *testing.T) {
		client := tenant.For(t)
		hub := c.For(t).Online(tenant)
		send := func(seq int, eventType string, device, trusted, data any) map[string]any {
			return map[string]any{
				"seq":           seq,
				"type":          eventType,
				"device_id":     device,
				"time":          "2026-01-02T03:04:05.123456Z",
				"clock_trusted": trusted,
				"data":          data,
			}
		}
		hub.Send("events", map[string]any{"log": "log-1", "events": []any{
			send(
				1, "channel.observed", 3, true,
				map[string]any{"key": "lock", "endpoint": 0, "value": true},
			),
			send(
				2,
				"channel.observed",
				3,
				false,
				map[string]any{
					"key":      "color",
					"endpoint": 0,
					"value":    map[string]any{"red": 1, "green": 2, "blue": 3, "warm_white": 0},
				},
			),
			send(
				3, "credential.created", 3, nil, map[string]any{"slot": 4, "label": "Cleaner «é»"},
			),
			send(4, "credential.applied", 3, true, map[string]any{"state": "active"}),
			send(5, "credential.revoked", 3, true, map[string]any{}),
			send(6, "rule.created", nil, true, map[string]any{"name": "Night", "enabled": true}),
			send(7, "rule.fired", nil, true, map[string]any{}),
			// "New event types are added without a version change."
			send(
				8, "weather.changed", nil, true,
				map[string]any{"deep": []any{1.0, map[string]any{"x": nil}}},
			),
		}})
		hub.WaitAck("log-1", 8)
		// "timestamp with microseconds", in UTC, whatever format the hub used.
		var formatted []any
		for i, written := range []string{
			"2026-01-02T03:04:05Z", "2026-01-02T05:04:05.5+02:00",
			"2026-01-02T03:04:05.123456789Z",
		} {
			event := send(9+i, "rule.fired", nil, true, map[string]any{})
			event["time"] = written
			formatted = append(formatted, event)
		}
		hub.Send("events", map[string]any{"log": "log-1", "events": formatted})
		hub.WaitAck("log-1", 11)
		last := client.AllEvents(hub.ID, "")[8:]
		for i, want := range []string{
			"2026-01-02T03:04:05.000000Z", "2026-01-02T03:04:05.500000Z",
			"2026-01-02T03:04:05.123456Z",
		} {
			if last[i].Time != want {
				t.Errorf("event %v: got time %s, want %s", formatted[i], last[i].Time, want)
			}
		}
		list := data(
			t, client.Get("/hubs/"+hub.ID+"/events").Object(t),
		)
		if list = list[:min(8, len(list))]; len(list) != 8 {
			t.Fatalf("got %d events, want 8: %v", len(list), list)
		}
		for i, e := range list {
			if e["hub_id"] != hub.ID || e["time"] != "2026-01-02T03:04:05.123456Z" {
				t.Errorf("event %d: got %v, want hub %s and the time sent", i+1, e, hub.ID)
			}
		}
		if list[0]["device_id"] != 3.0 || list[5]["device_id"] != nil ||
			list[1]["clock_trusted"] != false ||
			list[2]["clock_trusted"] != nil ||
			list[0]["clock_trusted"] != true {
			t.Errorf("got %v, want device_id and clock_trusted as sent", list)
		}
		all := client.AllEvents(hub.ID, "")
		if !sameJSON(all[7].Data, []byte(`{"deep":[1,{"x":null}]}`)) ||
			!sameJSON(all[2].Data, []byte(`{"slot":4,"label":"Cleaner «é»"}`)) {
			t.Errorf("got %s, want data as sent", harness.FormatEvents(all))
		}
	})

	t.Run("hub events of the cloud", func(t *testing.T) {
		// "hub.connected {}", "hub.disconnected {reason: string or null} (the broker's disconnect
		// reason, lowercased)"; "time: … (the cloud's clock for hub.* events)".
		client := tenant.For(t)
		hub := c.For(t).Online(tenant)
		before := time.Now().Add(-time.Second)
		hub.Disconnect()
		disconnected := client.AwaitType(hub.ID, "", "hub.disconnected")
		hub.Connect()
		connected := client.AwaitType(hub.ID, disconnected.Cursor, "hub.connected")
		if !sameJSON(disconnected.Data, []byte(`{"reason":"client closed"}`)) ||
			!sameJSON(connected.Data, []byte(`{}`)) ||
			disconnected.DeviceID != nil ||
			connected.DeviceID != nil {
			t.Errorf(
				"got %+v, then %+v, want the reason client closed, then {}, both without a device",
				disconnected, connected,
			)
		}
		for _, e := range []harness.Event{disconnected, connected} {
			if at, err := time.Parse(time.RFC3339Nano, e.Time); err != nil || at.Before(before) ||
				at.After(time.Now().Add(time.Second)) {
				t.Errorf("%s: got time %s, want the present time", e.Type, e.Time)
			}
		}
	})

	t.Run("lost events", func(t *testing.T) {
		// "When some of a hub's events could not be obtained, a hub.events_skipped event marks the
		// gap", "{from: integer, to: integer}".
		client := tenant.For(t)
		hub := c.For(t).
			VirtualHub(tenant, virtualhub.Config{
				Devices: []virtualhub.DeviceSpec{{Kind: "leak_sensor"}},
			})
		head := client.Head(hub.ID())
		from, to, err := hub.LoseEvents(5)
		harness.Must(t, err)
		harness.Must(t, hub.Report(1, virtualhub.ChannelRef{Key: "leak"}, true))
		skipped := client.AwaitType(hub.ID(), head, "hub.events_skipped")
		want := `{"from":` + text(number(from)) + `,"to":` + text(number(to)) + `}`
		if !sameJSON(skipped.Data, []byte(want)) || skipped.DeviceID != nil {
			t.Errorf("got %s, want %s", skipped.Data, want)
		}
		client.AwaitType(hub.ID(), skipped.Cursor, "channel.observed", 1)
	})
}
