package contract

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"hubcloud/test/harness"
)

// TestHubs holds the part "Hubs".
func TestHubs(t *testing.T) {
	t.Parallel()
	s := harness.Start(t)
	tenant, stranger := harness.NewTenant(t, s, "Hubs"), harness.NewTenant(t, s, "Stranger")

	t.Run("fields, present as the contract says", func(t *testing.T) {
		hub := onlineHub(t, s, tenant)
		var single, list map[string]any
		tenant.Must(http.MethodGet, "/hubs/"+hub.ID, nil, http.StatusOK).JSON(t, &single)
		hasExactly(t, "hub", single, "id", "name", "site_id", "connection", "firmware", "network", "registered_at")
		hasExactly(t, "connection", single["connection"].(map[string]any), "status", "since", "public_ip", "disconnect_reason")
		hasExactly(t, "network", single["network"].(map[string]any), "type", "interface", "ip_address", "ipv6_address", "mac_address", "ssid",
			"signal_dbm", "carrier", "radio", "metered", "reported_at")
		tenant.Must(http.MethodGet, "/hubs?limit=1", nil, http.StatusOK).JSON(t, &list)
		item := list["data"].([]any)[0].(map[string]any)
		hasExactly(t, "list form", item, "id", "name", "site_id", "connection", "registered_at")
		hasExactly(t, "its connection", item["connection"].(map[string]any), "status", "since")
	})

	t.Run("name and site", func(t *testing.T) {
		hub := onlineHub(t, s, tenant)
		var got struct {
			Name   *string
			SiteID string `json:"site_id"`
		}
		tenant.Must(http.MethodPatch, "/hubs/"+hub.ID, `{"name":"Lobby"}`, http.StatusOK).JSON(t, &got)
		if got.Name == nil || *got.Name != "Lobby" {
			t.Errorf("%+v", got)
		}
		var second site
		tenant.Must(http.MethodPost, "/sites", `{"name":"Second"}`, http.StatusCreated).JSON(t, &second)
		tenant.Must(http.MethodPatch, "/hubs/"+hub.ID, `{"name":null,"site_id":"`+second.ID+`"}`, http.StatusOK).JSON(t, &got)
		if got.Name != nil || got.SiteID != second.ID {
			t.Errorf("%+v", got)
		}
		tenant.Must(http.MethodGet, "/sites/"+second.ID, nil, http.StatusOK).JSON(t, &second)
		if second.HubCount != 1 {
			t.Errorf("hub_count %d", second.HubCount)
		}
		tenant.Must(http.MethodPatch, "/hubs/"+hub.ID, `{}`, http.StatusBadRequest)
		tenant.Must(http.MethodPatch, "/hubs/"+hub.ID, `{"site_id":null}`, http.StatusBadRequest)
		tenant.Must(http.MethodPatch, "/hubs/"+hub.ID, `{"site_id":"`+stranger.Site+`"}`, http.StatusNotFound)
		// "Adding a hub that the caller's organization already owns moves it to the site named in the request."
		tenant.Must(http.MethodPost, "/hubs", map[string]string{"serial": strings.ReplaceAll(hub.ID, "-", ""), "site_id": tenant.Site}, http.StatusOK).JSON(t, &got)
		if got.SiteID != tenant.Site {
			t.Errorf("%+v", got)
		}
	})

	t.Run("not addable: unknown, not yet online, another's", func(t *testing.T) {
		unseen := harness.NewRawHub(t, s)
		taken := onlineHub(t, s, stranger)
		for what, serial := range map[string]string{"unknown": "HUB-ZZZZ-ZZZZ-ZZZZ", "not yet online": unseen.Serial, "another's": taken.Serial} {
			answer := tenant.Must(http.MethodPost, "/hubs", map[string]string{"serial": serial, "site_id": tenant.Site}, http.StatusUnprocessableEntity)
			if answer.ErrorType() != "hub_not_addable" {
				t.Errorf("%s: %s", what, answer.Body)
			}
		}
		tenant.Must(http.MethodPost, "/hubs", map[string]string{"serial": unseen.Serial, "site_id": stranger.Site}, http.StatusNotFound)
		tenant.Must(http.MethodPost, "/hubs", map[string]string{"serial": unseen.Serial}, http.StatusBadRequest)
	})

	t.Run("a hub of another organization is none", func(t *testing.T) {
		hub := onlineHub(t, s, stranger)
		for _, route := range [][2]string{
			{http.MethodGet, ""}, {http.MethodPatch, ""}, {http.MethodPost, "/reset-link"}, {http.MethodGet, "/events"}, {http.MethodGet, "/events/stream"},
		} {
			var body any
			if route[0] == http.MethodPatch {
				body = `{"name":"Mine"}`
			}
			foreign := tenant.Must(route[0], "/hubs/"+hub.ID+route[1], body, http.StatusNotFound)
			unknown := tenant.Must(route[0], "/hubs/raw-zzzz-zzzz-zzzz"+route[1], body, http.StatusNotFound)
			if foreign.ErrorType() != "not_found" || len(foreign.Body) != len(unknown.Body) {
				t.Errorf("%v: foreign %s, unknown %s", route, foreign.Body, unknown.Body)
			}
		}
		var list struct{ Data []struct{ ID string } }
		tenant.Must(http.MethodGet, "/hubs?site_id="+stranger.Site, nil, http.StatusOK).JSON(t, &list)
		if len(list.Data) != 0 {
			t.Errorf("a stranger's site lists %v", list.Data)
		}
	})

	t.Run("two organizations add one hub at once, 50 times", func(t *testing.T) {
		for range 50 {
			hub := harness.NewRawHub(t, s)
			hub.Enroll()
			hub.Connect()
			hub.Hello("log-1", 1, 0)
			hub.WaitAck("log-1", 0)
			var both sync.WaitGroup
			statuses := make([]int, 2)
			for i, who := range []*harness.Tenant{tenant, stranger} {
				both.Go(func() {
					for statuses[i] == 0 || statuses[i] == http.StatusTooManyRequests {
						answer, err := who.Do(http.MethodPost, "/hubs", map[string]string{"serial": hub.Serial, "site_id": who.Site})
						if err != nil {
							t.Error(err)
							return
						}
						statuses[i] = answer.Status
					}
				})
			}
			both.Wait()
			hub.Disconnect()
			if statuses[0]+statuses[1] != http.StatusOK+http.StatusUnprocessableEntity {
				t.Fatalf("both asked for %s and got %v", hub.ID, statuses)
			}
		}
	})
}

func hasExactly(t *testing.T, what string, object map[string]any, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, ok := object[name]; !ok {
			t.Errorf("%s has no %s", what, name)
		}
	}
	if len(object) != len(names) {
		t.Errorf("%s has more than %v: %v", what, names, object)
	}
}
