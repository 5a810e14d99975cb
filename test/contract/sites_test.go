package contract

import (
	"fmt"
	"net/http"
	"regexp"
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

type siteList struct {
	Data    []site
	HasMore bool `json:"has_more"`
}

// sites tests "Site" and "Sites".
func sites(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Sites")

	t.Run("fields", func(t *testing.T) {
		// The table "Site": `id`, "UUID-shaped", `name`, `hub_count`, `created_at`.
		client := tenant.For(t)
		made := client.Create("/sites", `{"name":"  North wing "}`).Object(t)
		if id, _ := made["id"].(string); !regexp.MustCompile(
			`^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$`,
		).
			MatchString(id) {
			t.Errorf("id: got %q, want a UUID", id)
		}
		if made["name"] != "North wing" || made["hub_count"] != 0.0 {
			t.Errorf("created site: got %v, want North wing without hubs", made)
		}
	})

	t.Run("what is written is read at once", func(t *testing.T) {
		client := tenant.For(t)
		for i := range 20 {
			var made, read site
			name := fmt.Sprintf("Wing %d", i)
			client.Create("/sites", map[string]string{"name": name}).JSON(t, &made)
			client.Get("/sites/"+made.ID).JSON(t, &read)
			if read != made {
				t.Fatalf("read: got %+v, want %+v as created", read, made)
			}
			client.Patch("/sites/"+made.ID, map[string]string{"name": "New " + name})
			client.Get("/sites/"+made.ID).JSON(t, &read)
			if read.Name != "New "+name || read.CreatedAt != made.CreatedAt {
				t.Fatalf("renamed, then read %+v", read)
			}
		}
	})

	t.Run("names", func(t *testing.T) {
		// The contract does not show lengths; the design: 1 to 200 characters after trimming, no
		// control characters.
		client := tenant.For(t)
		for _, name := range []string{
			"x", strings.Repeat("x", 200), strings.Repeat("é", 200), "Café «Nörd» 🏢",
			"<script>alert(1)</script>", `quotes " and \ backslash`,
		} {
			var made, read site
			client.Create("/sites", map[string]string{"name": name}).JSON(t, &made)
			if client.Get("/sites/"+made.ID).JSON(t, &read); read.Name != name {
				t.Errorf("name: got %q, want %q", read.Name, name)
			}
		}
		for _, body := range []string{
			``, `{`, `[]`, `null`, `{}`, `{"name":""}`, `{"name":"  "}`, `{"name":null}`,
			`{"name":7}`, `{"name":["x"]}`, `{"Name":"x"}`,
			`{"name":"x","color":"red"}`, `{"name":"x"} trailing`, `{"name":"x","name":"y"}`,
			`{"name":"a\nb"}`, `{"name":"a\u0000b"}`,
			`{"name":"` + strings.Repeat("x", 201) + `"}`,
		} {
			client.Rejected(http.MethodPost, "/sites", body, "invalid_request")
			client.Rejected(http.MethodPatch, "/sites/"+tenant.Site, body, "invalid_request")
		}
		apiError := client.Rejected(
			http.MethodPost, "/sites", `{"name":"x","color":"red"}`, "invalid_request",
		)
		if !strings.Contains(apiError.Message, "color") {
			t.Errorf("want the unknown field named, got %s", apiError.Message)
		}
	})

	t.Run("no such site", func(t *testing.T) {
		// "404 not_found: no such site … in the organization". The same holds for a site of another
		// organization.
		client := tenant.For(t)
		stranger := c.For(t).OtherTenant("Stranger to sites")
		for _, id := range []string{
			noSite, stranger.Site, "x", strings.ToUpper(tenant.Site) + "0", "%00", "..%2f..%2fetc",
		} {
			client.Rejected(http.MethodGet, "/sites/"+id, nil, "not_found")
			client.Rejected(http.MethodPatch, "/sites/"+id, `{"name":"Mine"}`, "not_found")
		}
	})

	t.Run("pages, oldest first", func(t *testing.T) {
		// "50 items per page; response {data: [...], has_more: boolean}; when has_more is true,
		// pass the last item's id as starting_after."
		client := tenant.For(t)
		place := map[string]int{}
		for i := range 55 {
			place[client.NewSite(fmt.Sprintf("Site %d", i))] = i + 1
		}
		first := client.Get("/sites").Object(t)
		if n := len(data(t, first)); n != 50 || first["has_more"] != true {
			t.Errorf("first page: got %d sites, has_more %v", n, first["has_more"])
		}
		all := everySite(t, client, 50)
		var last site
		for _, s := range all {
			if place[s.ID] == 0 {
				continue // created by another test
			}
			if place[s.ID] != place[last.ID]+1 || s.CreatedAt < last.CreatedAt {
				t.Errorf("got %+v before %+v", last, s)
			}
			last = s
		}
		if place[last.ID] != len(place) {
			t.Errorf("last of %d sites: got %+v", len(place), last)
		}
		for _, limit := range []int{1, 7, 49} {
			if !c.Owned() {
				break // other tests create sites
			}
			if paged := everySite(t, client, limit); fmt.Sprint(paged) != fmt.Sprint(all) {
				t.Errorf("pages of %d: got %v, pages of 50: %v", limit, paged, all)
			}
		}
		for _, query := range []string{
			"limit=0", "limit=51", "limit=x", "limit=-1", "limit=1.5", "limit=",
			"starting_after=x", "starting_after=" + noSite, "limit=99999999999999999999",
		} {
			client.Rejected(http.MethodGet, "/sites?"+query, nil, "invalid_request")
		}
	})
}

func everySite(t *testing.T, client *harness.Tenant, limit int) []site {
	t.Helper()
	var all []site
	query := fmt.Sprintf("?limit=%d", limit)
	for {
		var page siteList
		client.Get("/sites"+query).JSON(t, &page)
		all = append(all, page.Data...)
		if !page.HasMore {
			return all
		}
		if len(page.Data) != limit {
			t.Fatalf("page of %d: got %d sites and has_more", limit, len(page.Data))
		}
		query = fmt.Sprintf("?limit=%d&starting_after=%s", limit, page.Data[limit-1].ID)
	}
}
