package httpapi

import (
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"

	"hubcloud/domain"
)

// renameSite makes a change, and returns the id of its request.
func renameSite(t *testing.T, s *service, name string) (requestID string) {
	t.Helper()
	a := s.do("PATCH", "/v1/sites/"+siteOne, `{"name":"`+name+`"}`)
	if a.StatusCode != 200 {
		t.Fatalf("rename the site: got %d %s", a.StatusCode, a.body)
	}
	return a.Header.Get("X-Request-Id")
}

type auditPage struct {
	Data []auditBody `json:"data"`
	Next string      `json:"next_cursor"`
	More bool        `json:"has_more"`
}

func auditOf(t *testing.T, s *service, query string) (page auditPage) {
	t.Helper()
	a := s.do("GET", "/v1/audit?"+query, "")
	if err := json.Unmarshal([]byte(a.body), &page); err != nil || a.StatusCode != 200 {
		t.Fatalf("GET /v1/audit?%s: got %d %s, want a page (%v)", query, a.StatusCode, a.body, err)
	}
	return page
}

// A record says who changed what, from which address and with which request; pages, filters and
// CSV have the same records, and nothing of them has a secret.
func TestAudit(t *testing.T) {
	t.Parallel()
	s := startReal(t, nil)
	id := renameSite(t, s, "=Yard")
	last := auditOf(t, s, "last=1")
	if len(last.Data) != 1 {
		t.Fatalf("last=1: got %+v, want one record", last)
	}
	got, key := last.Data[0], strings.TrimPrefix(s.bearer, "Bearer ")
	if got.Type != (domain.SiteRenamed{}).EventType() || *got.RequestID != id || *got.Address != "127.0.0.1" ||
		got.Actor.Kind != domain.ActorKey || !strings.Contains(key, *got.Actor.ID) ||
		got.Subject.ID != s.ids.Replace(siteOne) || *got.Detail != "=Yard" {
		t.Errorf("got %+v, want the change", got)
	}
	all := auditOf(t, s, "")
	for query, want := range map[string]int{
		"type=none&last=1": 0,
		"type=site.*":      2, "type=site.renamed": 1, "type=none": 0,
		"actor_id=" + *got.Actor.ID: 1, "actor_id=x": 0,
		"subject_id=" + got.Subject.ID: 2,
		"hub_id=" + string(hubOne):     1,
		"after=" + got.Cursor:          0,
		"after=" + last.Next:           0,
		"since=2026-01-01T00:00:00Z":   len(all.Data),
		"until=2026-01-01T00:00:00Z":   0,
		"type=site.*&type=key.created": 3,
	} {
		if page := auditOf(t, s, query); len(page.Data) != want || page.More || page.Next == "" {
			t.Errorf("GET /v1/audit?%s: got %+v, want %d records", query, page, want)
		}
	}
	// The last are those that the filter chooses, also if others came later.
	if page := auditOf(t, s, "type=site.created&last=1"); len(page.Data) != 1 {
		t.Errorf("the last record of a created site: got %+v, want one", page)
	}
	// Page by page: the same records.
	after := ""
	for i := range all.Data {
		page := auditOf(t, s, "limit=1"+after)
		if len(page.Data) != 1 || page.Data[0].Cursor != all.Data[i].Cursor ||
			page.More != (i < len(all.Data)-1) {
			t.Fatalf("page %d: got %+v, want %s", i, page, all.Data[i].Cursor)
		}
		after = "&after=" + page.Next
	}
	file := s.do("GET", "/v1/audit.csv", "")
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(file.body, "\ufeff"))).ReadAll()
	if err != nil || len(rows) != len(all.Data)+1 || rows[len(rows)-1][8] != "'=Yard" ||
		rows[len(rows)-1][11] != got.Cursor {
		t.Errorf("got the file %s, %v, want %d records", file.body, err, len(all.Data))
	}
	if secret := key[len(key)-20:]; strings.Contains(file.body, secret) {
		t.Errorf("got a secret in %s", file.body)
	}
}
