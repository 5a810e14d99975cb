package contract

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"hubcloud/test/harness"
)

// auditRecord is a record of the audit log as the API answers.
type auditRecord struct {
	Cursor, Type, Address string
	RequestID             string `json:"request_id"`
	Actor                 struct{ Kind, ID string }
	Subject               struct{ ID, Name string }
}

// auditLog tests the audit log of an organization, which is an addition to the contract.
func auditLog(t *testing.T, c *harness.Target) {
	tenant, foreign := c.Tenant("Audit"), c.Tenant("Another audit")
	client := tenant.For(t)
	read := func(query string) (records []auditRecord, next string) {
		t.Helper()
		var page struct {
			Data []auditRecord
			Next string `json:"next_cursor"`
		}
		client.Get("/audit?"+query).JSON(t, &page)
		return page.Data, page.Next
	}
	_, end := read("last=1")
	stream := client.Stream("/audit/stream?type=site.*", "")
	made := client.Create("/sites", `{"name":"Audited"}`)

	records, next := read("wait=60&after=" + end)
	if len(records) != 1 {
		t.Fatalf("got %+v, want the new site alone", records)
	}
	got := records[0]
	if got.Type != "site.created" || got.Subject.Name != "Audited" || got.Actor.Kind != "key" ||
		!strings.Contains(client.Key, got.Actor.ID) || got.Address != "127.0.0.1" ||
		got.RequestID != made.Header.Get("X-Request-Id") || next != got.Cursor {
		t.Errorf("got %+v, want the new site, by the request %v", got, made.Header)
	}
	message := stream.Next(t, time.Minute)
	var streamed auditRecord
	if err := json.Unmarshal([]byte(message.Data), &streamed); err != nil || streamed != got ||
		message.ID != got.Cursor || message.Event != got.Type {
		t.Errorf("got the message %+v, want %+v (%v)", message, got, err)
	}
	file := client.Get("/audit.csv?last=1")
	if lines := strings.Split(strings.TrimSpace(string(file.Body)), "\r\n"); len(lines) != 2 ||
		!strings.Contains(lines[1], `"Audited"`) || !strings.Contains(lines[1], got.Cursor) {
		t.Errorf("got the file %s, want the new site alone", file.Body)
	}

	other := foreign.For(t)
	for _, path := range []string{"/audit", "/audit.csv", "/audit/stream"} {
		other.Rejected(http.MethodGet, path+"?after="+got.Cursor, nil, "cursor_expired")
		client.Rejected(http.MethodGet, path+"?after=x", nil, "invalid_request")
	}
}
