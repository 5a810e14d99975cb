package client

import (
	"net/http"
	"strings"
	"testing"

	"hubcloud/streams/streamstest"
)

// A list of several pages is followed from the position of its first page: the later ones are of a
// later time, and what changed in between is on no page.
// A page may have no item and tell where the next one begins.
func TestSnapshotStatesHasThePositionOfTheFirstPage(t *testing.T) {
	t.Parallel()
	second := strings.Replace(stateJSON, "hub-1/3/2/color", "hub-1/4/0/lock", 1)
	c, sent := playing(
		t, nil,
		answer(
			http.StatusOK,
			`{"data":[`+stateJSON+`],"has_more":true,"next_starting_after":"hub-2/0/0/"}`,
			"Event-Cursor", "p1",
		),
		answer(
			http.StatusOK, `{"data":[],"has_more":true,"next_starting_after":"hub-3/0/0/"}`,
			"Event-Cursor", "p2",
		),
		answer(http.StatusOK, `{"data":[`+second+`],"has_more":false}`, "Event-Cursor", "p3"),
	)
	got, err := c.SnapshotStates(t.Context(), StateFilter{HubID: "hub-1"})
	streamstest.Must(t, err)
	if len(got.States) != 2 || got.States[1].ID != "hub-1/4/0/lock" || got.Position != "p1" {
		t.Errorf("SnapshotStates() = %+v, want two states and the position p1", got)
	}
	requests := sent.seen()
	if len(requests) != 3 {
		t.Fatalf("SnapshotStates() sent %d requests, want 3", len(requests))
	}
	if query := requests[2].query; !strings.Contains(query, "starting_after=hub-3%2F0%2F0%2F") {
		t.Errorf("the last page is asked for with %q, want it after hub-3/0/0/", query)
	}
}
