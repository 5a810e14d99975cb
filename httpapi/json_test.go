package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hubcloud/domain"
)

// Lists that are encoded by hand are the same as with encoding/json, whatever the names contain.
func TestWriteList(t *testing.T) {
	t.Parallel()
	req := &request{api: &api{}}
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "time"), 0)
		text := rapid.OneOf(
			rapid.String(), rapid.StringMatching(`[<>&"\\\x00-\x1f\x7f\x{2028}a-z]*`),
		)
		hubs := domain.Page[domain.Hub]{HasMore: rapid.Bool().Draw(t, "more")}
		sites := domain.Page[domain.Site]{HasMore: hubs.HasMore}
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			hubs.Data = append(hubs.Data, domain.Hub{
				ID: "hub-7k2m-q4xd-93ta", Name: rapid.Ptr(text, true).Draw(t, "name"), SiteID: "s",
				Status: domain.HubOnline, Since: at, AddedAt: at,
			})
			sites.Data = append(
				sites.Data,
				domain.Site{
					ID:        "s",
					Name:      text.Draw(t, "site"),
					HubCount:  rapid.IntRange(0, 1e6).Draw(t, "count"),
					CreatedAt: at,
				},
			)
		}
		same(
			t, written(t, req, func() error { writeList(req, hubs, newHubItem); return nil }),
			written(t, req, func() error { return req.writeJSON(200, listOf(hubs, newHubItem)) }),
		)
		same(
			t, written(t, req, func() error { writeList(req, sites, newSiteBody); return nil }),
			written(t, req, func() error { return req.writeJSON(200, listOf(sites, newSiteBody)) }),
		)
	})
}

func written(t *rapid.T, req *request, write func() error) []byte {
	recorder := httptest.NewRecorder()
	req.w = recorder
	if err := write(); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(recorder.Body.Bytes()) {
		t.Fatalf("got %s, want JSON", recorder.Body)
	}
	return recorder.Body.Bytes()
}

func same(t *rapid.T, got, want []byte) {
	if !bytes.Equal(got, want) {
		t.Fatalf("written\n%s\nwanted\n%s", got, want)
	}
}
