package portal_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"hubcloud/httpapi/portal"
	"hubcloud/hubbridge/ingest"
)

// A hub's page names everything that the hub does wrong, each in words of its own, and without an
// answer it is shown all the same.
func TestHubProblems(t *testing.T) {
	t.Parallel()
	b := newHubBackend(t)
	if page := read(t, b.ask("GET", b.path, nil)); strings.Contains(page, "hub-problem") {
		t.Errorf("a good hub: got %s, want no problem", page)
	}
	for _, reason := range ingest.FaultReasons() {
		b.faults = append(b.faults, portal.HubFault{Reason: string(reason), Since: time.Now().Add(-time.Hour)})
	}
	page := read(t, b.ask("GET", b.path, nil))
	for _, reason := range ingest.FaultReasons() {
		if strings.Count(page, `data-reason="`+string(reason)+`"`) != 1 {
			t.Errorf("reason %s: got %s, want it once", reason, page)
		}
	}
	if strings.Contains(page, "does not work as it should") {
		t.Error("a reason has no words of its own")
	}
	checkPage(t, page)
	b.unasked = errors.New("nobody answers")
	if response := b.ask("GET", b.path, nil); response.StatusCode != http.StatusOK {
		t.Errorf("without an answer: got %d, want the page", response.StatusCode)
	}
}
