package portal_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/portal"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// A book has what its kinds choose, with who did it and the names at the time. Its page and its file
// show it, and owners choose what it keeps.
func TestBook(t *testing.T) {
	t.Parallel()
	b := newHubBackend(t)
	b.reported = []domain.ReportedState{b.state(1, "Front <door>", "lock", "true")}
	b.addEvent(6*time.Hour, "channel.observed", 1, `{"key":"lock","value":false}`)
	b.addEvent(2*time.Hour, "channel.observed", 1, `{"key":"alarm","value":{"type":"lock","event":"keypad_unlock","active":true,"user":3}}`)
	b.addEvent(time.Hour, "channel.observed", 1, `{"key":"temperature","value":21}`)
	b.addEvent(time.Minute, "credential.created", 1, `{"slot":3,"label":"Cleaner"}`)
	keep := domain.BookSettings{Kinds: []domain.BookKind{domain.BookDoors}, Days: 30}
	entries, err := portal.New(b.config()).BookEntries(t.Context(), b.ID, keep, b.events)
	streamstest.Must(t, err)
	var got []string
	for _, e := range entries {
		if e.Kind == "" {
			continue
		}
		got = append(got, string(e.Kind)+" "+e.Device+" "+e.By)
		e.OrgID = b.ID
		data, err := json.Marshal(e)
		if err == nil {
			_, err = b.Env.Conns.Cloud.Request(
				streams.BookEntrySubject(b.ID, string(e.HubID), string(e.Kind)), data, time.Minute,
			)
		}
		streamstest.Must(t, err)
	}
	if want := "doors Front <door> at the device|doors Front <door> code 3"; strings.Join(got, "|") != want {
		t.Errorf("entries: got %q, want %q", got, want)
	}
	streamstest.Eventually(t, "the page has both entries", func() bool {
		page := b.page(t, "/book")
		return strings.Contains(page, "2 entries") && strings.Contains(page, "Front &lt;door&gt;")
	})
	for query, want := range map[string]string{
		"who=code+3": "1 entry", "device=front": "2 entries", "kind=codes": "0 entries",
		"to=2020-01-01T00:00": "0 entries",
	} {
		page := b.page(t, "/book?"+query)
		has(t, checkPage(t, page), want)
	}
	file := b.page(t, "/book.csv?who=code+3")
	if strings.Count(file, "\r\n") != 2 || !strings.Contains(file, `"code 3"`) {
		t.Errorf("the file: got %s, want the head and one entry", file)
	}
	chosen := url.Values{"kind": {"doors", "codes"}, "days": {"90"}}
	b.want(t, 303, "POST", "/book", chosen)
	org, err := b.Directory.Org(t.Context(), b.ID)
	if err != nil || org.Book.String() != "doors, codes for 90 days" {
		t.Errorf("chosen: got %v, %v", org.Book, err)
	}
}
