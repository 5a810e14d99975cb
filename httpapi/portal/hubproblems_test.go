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
	lacks(t, b.page(t, b.path), "hub-problem")
	for _, reason := range ingest.FaultReasons() {
		b.faults = append(b.faults, portal.HubFault{Reason: string(reason), Since: time.Now().Add(-time.Hour)})
	}
	page := b.page(t, b.path)
	for _, reason := range ingest.FaultReasons() {
		if strings.Count(page, `data-reason="`+string(reason)+`"`) != 1 {
			t.Errorf("reason %s: got %s, want it once", reason, page)
		}
	}
	lacks(t, page, "does not work as it should")
	checkPage(t, page)
	b.unasked = errors.New("nobody answers")
	b.want(t, http.StatusOK, "GET", b.path, nil)
}
