package contract

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"hubcloud/test/harness"
)

type site struct {
	ID        string
	Name      string
	HubCount  int    `json:"hub_count"`
	CreatedAt string `json:"created_at"`
}

// TestSites holds the part "Sites".
func TestSites(t *testing.T) {
	t.Parallel()
	s := harness.Start(t)
	org := s.CLI("org", "create", "--name", "Sites", "--owner-email", "o@example.com")[0]["org_id"].(string)
	client := harness.NewClient(t, s.Base(), s.CLI("key", "create", "--org", org, "--all-scopes")[0]["key"].(string))
	stranger := harness.NewTenant(t, s, "Stranger")

	t.Run("what is written is read at once", func(t *testing.T) {
		var made, read site
		client.Must(http.MethodPost, "/sites", map[string]string{"name": "  North wing "}, http.StatusCreated).JSON(t, &made)
		if made.Name != "North wing" || made.HubCount != 0 || made.CreatedAt == "" || len(made.ID) != 36 {
			t.Errorf("made %+v", made)
		}
		client.Must(http.MethodGet, "/sites/"+made.ID, nil, http.StatusOK).JSON(t, &read)
		if read != made {
			t.Errorf("made %+v, read %+v", made, read)
		}
		client.Must(http.MethodPatch, "/sites/"+made.ID, map[string]string{"name": "South wing"}, http.StatusOK).JSON(t, &read)
		if read.Name != "South wing" || read.CreatedAt != made.CreatedAt {
			t.Errorf("renamed %+v", read)
		}
	})

	t.Run("another organization's site is none", func(t *testing.T) {
		foreign := client.Must(http.MethodGet, "/sites/"+stranger.Site, nil, http.StatusNotFound)
		unknown := client.Must(http.MethodGet, "/sites/0190a0a0-0000-7000-8000-000000000000", nil, http.StatusNotFound)
		if foreign.ErrorType() != "not_found" || len(foreign.Body) != len(unknown.Body) {
			t.Errorf("foreign %s, unknown %s", foreign.Body, unknown.Body)
		}
		client.Must(http.MethodPatch, "/sites/"+stranger.Site, map[string]string{"name": "Mine"}, http.StatusNotFound)
	})

	t.Run("bad input names the field", func(t *testing.T) {
		for _, body := range []string{
			``, `{`, `[]`, `null`, `{}`, `{"name":""}`, `{"name":"  "}`, `{"name":null}`, `{"name":7}`, `{"Name":"x"}`, `{"name":"x","color":"red"}`,
			`{"name":"x"} trailing`, `{"name":"a\nb"}`, `{"name":"` + strings.Repeat("x", 201) + `"}`,
		} {
			answer := client.Must(http.MethodPost, "/sites", body, http.StatusBadRequest)
			if answer.ErrorType() != "invalid_request" {
				t.Errorf("%s: %s", body, answer.Body)
			}
		}
		if answer := client.Must(http.MethodPost, "/sites", `{"name":"x","color":"red"}`, http.StatusBadRequest); !strings.Contains(string(answer.Body), "color") {
			t.Errorf("the unknown field is not named: %s", answer.Body)
		}
	})

	t.Run("pages, oldest first", func(t *testing.T) {
		for i := range 4 {
			client.Must(http.MethodPost, "/sites", map[string]string{"name": fmt.Sprintf("Site %d", i)}, http.StatusCreated)
		}
		type list struct {
			Data    []site
			HasMore bool `json:"has_more"`
		}
		var all, page list
		client.Must(http.MethodGet, "/sites", nil, http.StatusOK).JSON(t, &all)
		if len(all.Data) != 5 || all.HasMore {
			t.Fatalf("%+v", all)
		}
		var paged []site
		query := "?limit=2"
		for {
			page = list{}
			client.Must(http.MethodGet, "/sites"+query, nil, http.StatusOK).JSON(t, &page)
			paged = append(paged, page.Data...)
			if !page.HasMore {
				break
			}
			query = "?limit=2&starting_after=" + page.Data[len(page.Data)-1].ID
		}
		if fmt.Sprint(paged) != fmt.Sprint(all.Data) {
			t.Errorf("paged %v, at once %v", paged, all.Data)
		}
		for _, query := range []string{"?limit=0", "?limit=51", "?limit=x", "?limit=-1", "?starting_after=" + stranger.Site, "?starting_after=x"} {
			client.Must(http.MethodGet, "/sites"+query, nil, http.StatusBadRequest)
		}
	})
}
