package rebuild_test

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/projectionstest"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// The read models of books have what the stream has, before and after a rebuild, and nothing of what
// was deleted from it; filters choose among it.
func TestBook(t *testing.T) {
	t.Parallel()
	w, s := projectionstest.NewProjected(t)
	publish := func(subject string, what any) {
		data, err := json.Marshal(what)
		if err == nil {
			_, err = w.Conns.Cloud.Request(subject, data, time.Minute)
		}
		streamstest.Must(t, err)
	}
	begun := time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)
	for n := range 6 {
		e := domain.BookEntry{
			OrgID: org, Kind: domain.BookDoors, HubID: "hub-a", SiteID: "mill", Hub: "Office", Device: "Front door",
			At: begun.Add(time.Duration(n) * time.Hour), Text: "Unlocked", By: "Ann", Event: []byte(`{}`),
			Position: strconv.Itoa(n),
		}
		if n%2 == 1 {
			e.HubID, e.Kind, e.By, e.Device = "hub-b", domain.BookCodes, "Bob", "Gate"
		}
		publish(streams.BookEntrySubject(org, string(e.HubID), string(e.Kind)), e)
	}
	publish(streams.BookCutSubject(org), domain.BookCut{OrgID: org, Before: 3})
	found := func(org string, f domain.BookFilter) (hours []int) {
		page, _, err := s.BookPage(t.Context(), org, f, 10, domain.BookPlace{})
		if err != nil {
			return nil
		}
		for _, e := range page.Data {
			hours = append(hours, e.At.Hour())
		}
		return hours
	}
	check := func() {
		t.Helper()
		for name, c := range map[string]struct {
			filter domain.BookFilter
			want   int
		}{
			"all": {domain.BookFilter{}, 4}, "kind": {domain.BookFilter{Kind: domain.BookCodes}, 2},
			"who":   {domain.BookFilter{Who: "ANN"}, 2},
			"place": {domain.BookFilter{Place: "door office"}, 2},
			"site":  {domain.BookFilter{SiteID: "elsewhere"}, 0},
			"from":  {domain.BookFilter{From: begun.Add(4 * time.Hour)}, 2},
			"to":    {domain.BookFilter{To: begun.Add(4 * time.Hour)}, 2},
		} {
			if got := found(org, c.filter); len(got) != c.want {
				t.Errorf("%s: got the entries of the hours %v, want %d", name, got, c.want)
			}
		}
		if got := found("01935f2e-0000-7000-8000-00000000000b", domain.BookFilter{}); len(got) > 0 {
			t.Errorf("another organization sees %v", got)
		}
		page, last, err := s.BookPage(t.Context(), org, domain.BookFilter{}, 3, domain.BookPlace{})
		if err != nil || !page.HasMore || len(page.Data) != 3 {
			t.Fatalf("a page of three: got %+v, %v", page, err)
		}
		page, _, err = s.BookPage(t.Context(), org, domain.BookFilter{}, 3, last)
		if err != nil || page.HasMore || len(page.Data) != 1 {
			t.Errorf("the next page: got %+v, %v, want the oldest entry", page, err)
		}
	}
	streamstest.Eventually(t, "the entries are readable", func() bool {
		return len(found(org, domain.BookFilter{})) == 4
	})
	check()
	c := w.Control(t)
	if all, differences := projectionstest.Verify(t, c); len(differences) > 0 || all[3].Rows != 4 {
		t.Errorf("Verify: got %+v with differences %+v, want 4 rows and none", all, differences)
	}
	streamstest.Must(t, c.Rebuild(t.Context(), nil))
	check()
}
