package contract

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	"hubcloud/test/harness"
)

// hubList tests the list of hubs: "ordered by hub ID", "50 items per page", `site_id` "(only hubs
// at this site)".
func hubList(t *testing.T, c *harness.Target) {
	const many = 53
	tenant := c.Tenant("Hub list")
	inventory := c.Inventory(many)
	other := tenant.NewSite("Other")
	ids := make([]string, many)
	queue := make(chan int, many)
	for i := range many {
		ids[i] = inventory[i].HubID
		queue <- i
	}
	close(queue)
	var adding sync.WaitGroup
	for range 8 {
		adding.Go(func() {
			for i := range queue {
				raw := inventory[i].Raw(t, c.Public)
				raw.Enroll()
				raw.GoOnline()
				site := tenant.Site
				if i < 3 {
					site = other
				}
				answer, err := tenant.Try(
					http.MethodPost, "/hubs",
					map[string]string{"serial": raw.Serial, "site_id": site},
				)
				if err != nil || answer.Status != http.StatusOK {
					t.Errorf(
						"add %s: got %d %s %v, want 200", raw.ID, answer.Status, answer.Body, err,
					)
				}
			}
		})
	}
	adding.Wait()
	if t.Failed() {
		return
	}
	at := func(site string, limit int) []string {
		t.Helper()
		var all []string
		query := fmt.Sprintf("?site_id=%s", site)
		if limit > 0 {
			query += fmt.Sprintf("&limit=%d", limit)
		}
		after := ""
		for {
			var page struct {
				Data    []hub
				HasMore bool `json:"has_more"`
			}
			tenant.Get("/hubs"+query+after).JSON(t, &page)
			for _, h := range page.Data {
				all = append(all, h.ID)
				if h.SiteID != site {
					t.Errorf("list of site %s: got hub %s of site %s", site, h.ID, h.SiteID)
				}
			}
			if !page.HasMore {
				return all
			}
			if limit == 0 && len(page.Data) != 50 {
				t.Errorf("page without a limit: got %d hubs, want 50", len(page.Data))
			}
			after = "&starting_after=" + page.Data[len(page.Data)-1].ID
		}
	}
	few, rest := slices.Sorted(slices.Values(ids[:3])), slices.Sorted(slices.Values(ids[3:]))
	for _, limit := range []int{0, 1, 2, 3, 50} {
		if got := at(other, limit); !slices.Equal(got, few) {
			t.Errorf("pages of %d of one site: got %v, want %v", limit, got, few)
		}
	}
	for _, limit := range []int{0, 7, 49, 50} {
		if got := at(tenant.Site, limit); !slices.Equal(got, rest) {
			t.Errorf("pages of %d of the other site: got %v, want %v", limit, got, rest)
		}
	}
	first := tenant.Get("/hubs").Object(t)
	if n := len(data(t, first)); n != 50 || first["has_more"] != true {
		t.Errorf("first page of %d hubs: got %d, has_more %v", many, n, first["has_more"])
	}
	if got := at(noSite, 0); len(got) != 0 {
		t.Errorf("unknown site: got hubs %v, want none", got)
	}
	for _, query := range []string{
		"limit=0", "limit=51", "limit=x", "limit=-1", "starting_after=x",
		"starting_after=" + noHub,
	} {
		tenant.Rejected(http.MethodGet, "/hubs?"+query, nil, "invalid_request")
	}
}
