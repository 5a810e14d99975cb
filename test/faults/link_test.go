package faults

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// adopted returns a hub that has sent hello with an empty log and belongs to the tenant.
func adopted(t *testing.T, s *harness.Service, tenant *harness.Tenant) *harness.RawHub {
	t.Helper()
	hub := harness.NewRawHub(t, s)
	hub.Enroll()
	hub.Connect()
	hub.Hello("log-1", 1, 0)
	hub.WaitAck("log-1", 0)
	tenant.Add(hub.Serial)
	return hub
}

// values summarizes events: the value of each channel.observed, the range of each
// hub.events_skipped, otherwise the type.
func values(events []harness.Event) []string {
	var all []string
	for _, e := range events {
		switch e.Type {
		case "channel.observed":
			var data struct{ Value json.Number }
			_ = json.Unmarshal(e.Data, &data)
			all = append(all, data.Value.String())
		case "hub.events_skipped":
			var data struct{ From, To uint64 }
			_ = json.Unmarshal(e.Data, &data)
			all = append(all, fmt.Sprintf("skip %d-%d", data.From, data.To))
		default:
			all = append(all, e.Type)
		}
	}
	return all
}

// expect checks the values of a log's events.
func expect(t *testing.T, got []harness.Event, want ...string) {
	t.Helper()
	if a, b := strings.Join(values(got), ", "), strings.Join(want, ", "); a != b {
		t.Errorf("log: got\n%s\nwant\n%s", a, b)
	}
}

// TestLink tests the rules of the hub protocol, section 4, each with its own hub.
func TestLink(t *testing.T) {
	t.Parallel()
	s := harness.Start(t)
	tenant := harness.NewTenant(t, s, "Link")

	t.Run("stored events are ignored", func(t *testing.T) {
		t.Parallel()
		hub := adopted(t, s, tenant)
		hub.EventsFrom("log-1", 1, 3)
		hub.WaitAck("log-1", 3)
		hub.EventsFrom("log-1", 1, 3)
		hub.EventsFrom("log-1", 2, 5)
		hub.WaitAck("log-1", 5)
		expect(t, tenant.AllEvents(hub.ID, ""), "1", "2", "3", "4", "5")
	})

	t.Run("events after a gap are not stored and the ack is repeated", func(t *testing.T) {
		t.Parallel()
		hub := adopted(t, s, tenant)
		hub.EventsFrom("log-1", 1, 2)
		hub.WaitAck("log-1", 2)
		hub.EventsFrom("log-1", 4, 6)
		if ack := hub.NextAck(); ack.Through != 2 {
			t.Errorf("ack of a message after a gap: got %+v, want through 2", ack)
		}
		hub.EventsFrom("log-1", 3, 6)
		hub.WaitAck("log-1", 6)
		expect(t, tenant.AllEvents(hub.ID, ""), "1", "2", "3", "4", "5", "6")
	})

	t.Run("lost events are reported once", func(t *testing.T) {
		t.Parallel()
		hub := adopted(t, s, tenant)
		hub.EventsFrom("log-1", 1, 2)
		hub.WaitAck("log-1", 2)
		hub.Hello("log-1", 10, 12)
		hub.WaitAck("log-1", 9)
		hub.Hello("log-1", 10, 12)
		hub.WaitAck("log-1", 9)
		hub.EventsFrom("log-1", 10, 12)
		hub.WaitAck("log-1", 12)
		expect(t, tenant.AllEvents(hub.ID, ""), "1", "2", "skip 3-9", "10", "11", "12")
	})

	t.Run("a new log starts with the reset and expires every cursor", func(t *testing.T) {
		t.Parallel()
		hub := adopted(t, s, tenant)
		hub.EventsFrom("log-1", 1, 2)
		hub.WaitAck("log-1", 2)
		before := tenant.Events(hub.ID, "", 1, 0).NextCursor
		hub.Hello("log-2", 5, 6)
		hub.WaitAck("log-2", 4)
		hub.EventsFrom("log-2", 5, 6)
		hub.WaitAck("log-2", 6)
		expect(t, tenant.AllEvents(hub.ID, ""), "hub.log_reset", "5", "6")
		answer := tenant.Must(
			http.MethodGet, "/hubs/"+hub.ID+"/events?after="+before, nil, http.StatusGone,
		)
		if answer.ErrorType() != "cursor_expired" {
			t.Errorf("got error type %q, want cursor_expired", answer.ErrorType())
		}
	})

	t.Run("a malformed event is skipped and its neighbours are stored", func(t *testing.T) {
		t.Parallel()
		hub := adopted(t, s, tenant)
		hub.BreaksProtocol()
		with := func(seq uint64, change func(map[string]any)) map[string]any {
			event := harness.Numbered(seq)
			change(event)
			return event
		}
		hub.Send("events", map[string]any{"log": "log-1", "events": []any{
			harness.Numbered(1),
			with(2, func(e map[string]any) { delete(e, "type") }),
			with(3, func(e map[string]any) { e["time"] = "yesterday" }),
			harness.Numbered(4),
			with(5, func(e map[string]any) { e["type"] = "hub.connected" }),
			with(6, func(e map[string]any) { e["data"] = []int{1} }),
			with(7, func(e map[string]any) { e["device_id"] = "3" }),
			with(8, func(e map[string]any) { e["clock_trusted"] = "yes" }),
			with(
				9,
				func(e map[string]any) {
					e["data"] = map[string]any{
						"value": strings.Repeat("x", 17<<10),
					}
				},
			),
			with(
				10, func(e map[string]any) { e["type"] = "weather.changed"; e["device_id"] = nil },
			),
		}})
		hub.WaitAck("log-1", 10)
		expect(
			t, tenant.AllEvents(hub.ID, ""), "1", "skip 2-2", "skip 3-3", "4",
			"skip 5-5", "skip 6-6", "skip 7-7", "skip 8-8", "skip 9-9", "weather.changed",
		)
	})

	t.Run("an unreadable message is dropped whole", func(t *testing.T) {
		t.Parallel()
		hub := adopted(t, s, tenant)
		hub.BreaksProtocol()
		hub.EventsFrom("log-1", 1, 1)
		hub.WaitAck("log-1", 1)
		tooMany := []any{}
		for seq := uint64(2); seq < 503; seq++ {
			tooMany = append(tooMany, harness.Numbered(seq))
		}
		for what, message := range map[string]any{
			"a hole": map[string]any{
				"log": "log-1", "events": []any{harness.Numbered(2), harness.Numbered(4)},
			},
			"no numbers": map[string]any{
				"log": "log-1", "events": []any{map[string]any{"type": "x"}},
			},
			"501 events": map[string]any{"log": "log-1", "events": tooMany},
		} {
			hub.Send("events", message)
			if ack := hub.NextAck(); ack.Through != 1 {
				t.Errorf("%s: got ack %+v, want through 1", what, ack)
			}
		}
		hub.EventsFrom("log-1", 2, 2)
		hub.WaitAck("log-1", 2)
		expect(t, tenant.AllEvents(hub.ID, ""), "1", "2")
	})

	t.Run(
		"without an organization all events are acknowledged and none stored",
		func(t *testing.T) {
			t.Parallel()
			hub := harness.NewRawHub(t, s)
			hub.Enroll()
			hub.Connect()
			hub.Hello("log-1", 1, 3)
			hub.WaitAck("log-1", 0)
			hub.EventsFrom("log-1", 1, 3)
			hub.WaitAck("log-1", 3)
			tenant.Add(hub.Serial)
			hub.EventsFrom("log-1", 4, 5)
			hub.WaitAck("log-1", 5)
			expect(t, tenant.AllEvents(hub.ID, ""), "4", "5")
			var added struct {
				Connection struct{ Status string }
				Firmware   struct{ Version string }
			}
			tenant.Must(http.MethodGet, "/hubs/"+hub.ID, nil, http.StatusOK).JSON(t, &added)
			if added.Connection.Status != "online" || added.Firmware.Version != "1.0.0" {
				t.Errorf("added while connected: got %+v, want online with firmware 1.0.0", added)
			}
		},
	)

	t.Run("a takeover is a disconnect and a connect", func(t *testing.T) {
		t.Parallel()
		hub := adopted(t, s, tenant)
		hub.Connect()
		streamstest.Eventually(t, "two events",
			func() bool { return len(tenant.AllEvents(hub.ID, "")) >= 2 },
		)
		events := tenant.AllEvents(hub.ID, "")
		expect(t, events, "hub.disconnected", "hub.connected")
		if string(events[0].Data) != `{"reason":"duplicate client id"}` {
			t.Errorf("got data %s, want the reason \"duplicate client id\"", events[0].Data)
		}
	})

	t.Run("a disconnect has its reason", func(t *testing.T) {
		t.Parallel()
		hub := adopted(t, s, tenant)
		hub.Disconnect()
		streamstest.Eventually(t, "hub.disconnected",
			func() bool { return len(tenant.AllEvents(hub.ID, "")) == 1 },
		)
		expect(t, tenant.AllEvents(hub.ID, ""), "hub.disconnected")
		streamstest.Eventually(t, "status offline", func() bool {
			var got struct {
				Connection struct {
					Status           string
					DisconnectReason string `json:"disconnect_reason"`
				}
			}
			tenant.Must(http.MethodGet, "/hubs/"+hub.ID, nil, http.StatusOK).JSON(t, &got)
			return got.Connection.Status == "offline" &&
				got.Connection.DisconnectReason == "client closed"
		})
		hub.Connect()
		streamstest.Eventually(t, "hub.connected",
			func() bool { return len(tenant.AllEvents(hub.ID, "")) == 2 },
		)
		expect(t, tenant.AllEvents(hub.ID, ""), "hub.disconnected", "hub.connected")
	})

	t.Run("a link reset disconnects the hub and lets it enrol again", func(t *testing.T) {
		t.Parallel()
		hub := adopted(t, s, tenant)
		tenant.Must(http.MethodPost, "/hubs/"+hub.ID+"/reset-link", nil, http.StatusNoContent)
		select {
		case <-hub.Lost:
		case <-time.After(time.Minute):
			t.Fatal("still connected a minute after the link was reset")
		}
		if err := hub.TryConnect(hub.ID); err == nil {
			t.Fatal("revoked certificate: got a connection")
		}
		hub.Enroll()
		hub.Connect()
	})

	t.Run("impostors are rejected", func(t *testing.T) {
		t.Parallel()
		hub, other := adopted(t, s, tenant), adopted(t, s, tenant)
		hub.BreaksProtocol()
		if err := hub.TryConnect(other.ID); err == nil {
			t.Error("another hub's client id: got a connection")
		}
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		status, wrong := hub.EnrollWith(key, hub.Serial, "wrong")
		unknownStatus, unknown := hub.EnrollWith(key, "HUB-ZZZZ-ZZZZ-ZZZZ", "wrong")
		if status != http.StatusUnauthorized || unknownStatus != http.StatusUnauthorized {
			t.Errorf(
				"wrong secret: got %d %s; unknown Serial: got %d %s; want 401 for both", status,
				wrong, unknownStatus, unknown,
			)
		}
		hub.Publish("hub/"+other.ID+"/events", []byte(`{"log":"log-1","events":[]}`))
		hub.EventsFrom("log-1", 1, 1)
		hub.WaitAck("log-1", 1)
		expect(t, tenant.AllEvents(other.ID, ""))
	})
}
