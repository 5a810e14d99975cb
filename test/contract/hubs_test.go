package contract

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

type hub struct {
	ID         string
	Name       *string
	SiteID     string `json:"site_id"`
	Connection struct {
		Status           string
		Since            string
		PublicIP         *string `json:"public_ip"`
		DisconnectReason *string `json:"disconnect_reason"`
	}
	Firmware *struct{ Version string }
}

func getHub(client *harness.Client, id string) hub {
	client.T.Helper()
	var got hub
	client.Get("/hubs/"+id).JSON(client.T, &got)
	return got
}

// awaitStatus waits until a hub has a connection status.
func awaitStatus(client *harness.Client, id, status string) {
	client.T.Helper()
	streamstest.Eventually(client.T, "status "+status, func() bool {
		return getHub(client, id).Connection.Status == status
	})
}

// hubs tests "Hub" and "Hubs".
func hubs(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Hubs")

	t.Run("fields", func(t *testing.T) {
		// The tables "Hub", "connection" and "network".
		client := tenant.For(t)
		raw := c.For(t).RawHub()
		raw.Enroll()
		raw.Connect()
		raw.Send("hello", map[string]any{
			"protocol": 1, "log": "log-1", "oldest": 1, "newest": 0, "clock_trusted": true,
			"firmware": map[string]any{"version": "2.4.1"},
			"network": map[string]any{
				"type": "wifi", "interface": "wlan0", "ip_address": "10.0.4.7",
				"ipv6_address": nil, "mac_address": "02:00:00:00:00:01",
				"ssid": "Lobby", "signal_dbm": -61, "carrier": nil, "radio": nil, "metered": true,
			},
		})
		raw.WaitAck("log-1", 0)
		added := client.Must(http.MethodPost, "/hubs", map[string]string{
			"serial": raw.Serial, "site_id": client.Site, "name": "Lobby",
		}, http.StatusOK).
			Object(t)
		single := client.Get("/hubs/" + raw.ID).Object(t)
		patched := client.Patch("/hubs/"+raw.ID, `{"name":"Lobby"}`).Object(t)
		for what, got := range map[string]map[string]any{
			"added": added, "single": single, "patched": patched,
		} {
			connection := got["connection"].(map[string]any)
			if ip, _ := connection["public_ip"].(string); net.ParseIP(ip) == nil {
				t.Errorf("%s: connected hub: got public_ip %v", what, connection["public_ip"])
			}
			if got["id"] != raw.ID || got["name"] != "Lobby" || got["site_id"] != client.Site ||
				connection["status"] != "online" {
				t.Errorf(
					"%s: got %v, want hub %s online at site %s", what, got, raw.ID, client.Site,
				)
			}
			network := got["network"].(map[string]any)
			if network["type"] != "wifi" || network["signal_dbm"] != -61.0 ||
				network["metered"] != true ||
				network["ipv6_address"] != nil ||
				network["ssid"] != "Lobby" {
				t.Errorf("%s: got network %v, want that of the hello", what, network)
			}
		}
	})

	t.Run("connection status", func(t *testing.T) {
		// The table "Hub connection.status", and its events.
		client := tenant.For(t)
		raw := c.For(t).Online(tenant)
		head := client.Head(raw.ID)
		raw.Disconnect()
		client.AwaitType(raw.ID, head, "hub.disconnected")
		awaitStatus(client.Client, raw.ID, "offline")
		if got := getHub(client.Client, raw.ID); got.Connection.DisconnectReason == nil ||
			*got.Connection.DisconnectReason != strings.ToLower(*got.Connection.DisconnectReason) {
			t.Errorf("disconnect_reason: got %+v, want lower case", got.Connection)
		}
		away := getHub(client.Client, raw.ID)
		raw.Connect()
		client.AwaitType(raw.ID, head, "hub.connected")
		awaitStatus(client.Client, raw.ID, "online")
		if back := getHub(client.Client, raw.ID); back.Connection.Since <= away.Connection.Since {
			t.Errorf(
				"got offline since %s, online since %s", away.Connection.Since,
				back.Connection.Since,
			)
		}
		// `network`: "what the hub reported when it last connected"; and so with firmware.
		raw.Send("hello", map[string]any{
			"protocol": 1, "log": "log-1", "oldest": 1, "newest": 0, "clock_trusted": true,
			"firmware": map[string]any{"version": "9.9.9"},
			"network": map[string]any{
				"type":      "cellular",
				"interface": "wwan0",
				"carrier":   "Telenor",
				"radio":     "lte",
				"metered":   true,
			},
		})
		streamstest.Eventually(t, "the values of the last hello", func() bool {
			got := client.Get("/hubs/" + raw.ID).Object(t)
			network := got["network"].(map[string]any)
			return got["firmware"].(map[string]any)["version"] == "9.9.9" &&
				network["type"] == "cellular" &&
				network["carrier"] == "Telenor"
		})
	})

	t.Run("added while offline", func(t *testing.T) {
		// "unknown (hub has not connected since it was added)".
		client := tenant.For(t)
		var raw *harness.RawHub
		var added hub
		// The service notices the disconnect a moment later, which is not visible for a hub without
		// an organization. If the wait was too short, try with another hub.
		for wait := 300 * time.Millisecond; added.Connection.Status != "unknown"; wait *= 2 {
			if wait > time.Minute {
				t.Fatalf("added while offline: got %+v, want unknown", added)
			}
			raw = c.For(t).RawHub()
			raw.Enroll()
			raw.GoOnline()
			raw.Disconnect()
			harness.Elapse(wait)
			client.Must(http.MethodPost, "/hubs", map[string]string{
				"serial": raw.Serial, "site_id": client.Site,
			}, http.StatusOK).
				JSON(t, &added)
		}
		if got := getHub(client.Client, raw.ID); got.Connection.Status != "unknown" ||
			got.Connection.DisconnectReason != nil {
			t.Errorf("hub added while offline: got %+v, want unknown without a reason", got)
		}
		raw.Connect()
		client.AwaitType(raw.ID, "", "hub.connected")
		awaitStatus(client.Client, raw.ID, "online")
	})

	t.Run("name and site", func(t *testing.T) {
		// "body with name (string or null; null clears it), site_id (string), or both".
		client := tenant.For(t)
		raw := c.For(t).Online(tenant)
		second := client.NewSite("Second")
		var got hub
		patch := func(body string) hub {
			t.Helper()
			client.Patch("/hubs/"+raw.ID, body).JSON(t, &got)
			if read := getHub(client.Client, raw.ID); (read.Name == nil) != (got.Name == nil) ||
				read.SiteID != got.SiteID {
				t.Errorf("%s: got answer %+v, then read %+v", body, got, read)
			}
			return got
		}
		if patch(`{"name":"Lobby"}`); got.Name == nil || *got.Name != "Lobby" ||
			got.SiteID != client.Site {
			t.Errorf("renamed: got %+v, want Lobby at %s", got, client.Site)
		}
		if patch(`{"site_id":"` + second + `"}`); got.Name == nil || *got.Name != "Lobby" ||
			got.SiteID != second {
			t.Errorf("moved: got %+v, want Lobby at %s", got, second)
		}
		if patch(`{"name":null,"site_id":"` + client.Site + `"}`); got.Name != nil ||
			got.SiteID != client.Site {
			t.Errorf("cleared and moved: got %+v, want no name, at %s", got, client.Site)
		}
		patch(`{"site_id":"` + second + `"}`)
		var counted site
		if client.Get("/sites/"+second).JSON(t, &counted); counted.HubCount != 1 {
			t.Errorf("hub_count: got %d, want 1", counted.HubCount)
		}
		for _, body := range []string{
			``, `{}`, `{"site_id":null}`, `{"site_id":7}`, `{"name":7}`, `{"name":""}`,
			`{"color":"red"}`, `[]`, `{"name":"` + strings.Repeat("x", 201) + `"}`,
		} {
			client.Rejected(http.MethodPatch, "/hubs/"+raw.ID, body, "invalid_request")
		}
		client.Rejected(http.MethodPatch, "/hubs/"+raw.ID, `{"site_id":"`+noSite+`"}`, "not_found")
		client.Rejected(http.MethodPatch, "/hubs/"+noHub, `{"name":"x"}`, "not_found")
		// "Adding a hub that the caller's organization already owns moves it to the site named in
		// the request."
		client.Must(http.MethodPost, "/hubs", map[string]string{
			"serial": raw.Serial, "site_id": client.Site,
		}, http.StatusOK).
			JSON(t, &got)
		if got.SiteID != client.Site || getHub(client.Client, raw.ID).SiteID != client.Site {
			t.Errorf("added again: got %+v, want it at %s", got, client.Site)
		}
		client.Get("/sites/"+second).JSON(t, &counted)
		if counted.HubCount != 0 {
			t.Errorf("hub_count of the former site: got %d, want 0", counted.HubCount)
		}
	})

	t.Run("serial", func(t *testing.T) {
		// "serial: string (required; any case, with or without dashes)".
		client := tenant.For(t)
		raw := c.For(t).Online(tenant)
		bare := strings.ReplaceAll(raw.Serial, "-", "")
		mixed := strings.ToLower(raw.Serial[:len(raw.Serial)/2]) + raw.Serial[len(raw.Serial)/2:]
		for _, serial := range []string{
			raw.Serial, strings.ToLower(raw.Serial), bare, strings.ToLower(bare), mixed,
		} {
			client.Must(
				http.MethodPost, "/hubs",
				map[string]string{"serial": serial, "site_id": client.Site}, http.StatusOK,
			)
		}
		for _, body := range []string{
			`{"site_id":"` + client.Site + `"}`, `{"serial":"` + raw.Serial + `"}`,
			`{"serial":null,"site_id":"` + client.Site + `"}`,
			`{"serial":7,"site_id":"` + client.Site + `"}`,
			`{"serial":"` + raw.Serial + `","site_id":null}`,
			`{"serial":"` + raw.Serial + `","site_id":"` + client.Site + `","colour":1}`,
			`{"serial":"` + raw.Serial + `","site_id":"` + client.Site + `","name":7}`,
		} {
			client.Rejected(http.MethodPost, "/hubs", body, "invalid_request")
		}
	})

	t.Run("not addable", func(t *testing.T) {
		// "POST /hubs answers 422 hub_not_addable when the Serial is unknown, the hub has not come
		// online yet, or another organization has it." The three answers are equal and do not
		// reveal which hubs exist.
		client := tenant.For(t)
		unseen := c.For(t).RawHub()
		serials := map[string]string{
			"unknown":                     "HUB-ZZZZ-ZZZZ-ZZZZ",
			"not yet online":              unseen.Serial,
			"not enrolled and lower case": strings.ToLower(unseen.Serial),
		}
		serials["another's"] = c.For(t).Online(c.For(t).OtherTenant("Stranger to hubs")).Serial
		messages := map[string]bool{}
		for what, serial := range serials {
			apiError := client.Rejected(
				http.MethodPost, "/hubs",
				map[string]string{"serial": serial, "site_id": client.Site}, "hub_not_addable",
			)
			messages[apiError.Message] = true
			if len(messages) > 1 {
				t.Errorf("%s: got distinguishable answers: %v", what, messages)
			}
		}
		client.Rejected(
			http.MethodPost, "/hubs", map[string]string{"serial": unseen.Serial, "site_id": noSite},
			"not_found",
		)
		unseen.Enroll()
		client.Rejected(
			http.MethodPost, "/hubs",
			map[string]string{"serial": unseen.Serial, "site_id": client.Site}, "hub_not_addable",
		)
		// "yes, once the hub is online".
		unseen.GoOnline()
		client.Add(unseen.Serial)
	})

	t.Run("reset link", func(t *testing.T) {
		// "revokes the hub's cloud certificate and disconnects it so it can be issued a new one; …
		// it stays in the organization and at its site." The answer is 204 (design, section 6).
		client := tenant.For(t)
		raw := c.For(t).Online(tenant)
		answer := client.Must(
			http.MethodPost, "/hubs/"+raw.ID+"/reset-link", nil, http.StatusNoContent,
		)
		if len(answer.Body) != 0 {
			t.Errorf("204: got body %s, want none", answer.Body)
		}
		select {
		case <-raw.Lost:
		case <-time.After(time.Minute):
			t.Fatal("still connected a minute after the link was reset")
		}
		if err := raw.TryConnect(raw.ID); err == nil {
			t.Fatal("revoked certificate: got a connection")
		}
		if got := getHub(client.Client, raw.ID); got.SiteID != client.Site {
			t.Errorf("reset link: got %+v, want the hub at site %s", got, client.Site)
		}
		raw.Enroll()
		raw.GoOnline()
		awaitStatus(client.Client, raw.ID, "online")
		client.Rejected(http.MethodPost, "/hubs/"+noHub+"/reset-link", nil, "not_found")
	})
}
