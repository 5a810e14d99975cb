package doctor

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// Limits that no doctor sends ended the service: {} made a hub without a disconnection one that
// flaps.
func TestLimitsOfARequestAreChecked(t *testing.T) {
	t.Parallel()
	for _, limits := range []string{"", "x", "null", "{}", `{"Flaps":0,"HubFacts":1}`} {
		answer := httptest.NewRecorder()
		Handler(Service{}).ServeHTTP(answer, httptest.NewRequest(
			http.MethodGet, Path+"?limits="+url.QueryEscape(limits), nil,
		))
		if answer.Code != http.StatusBadRequest || !strings.HasPrefix(answer.Body.String(), "limits: ") {
			t.Errorf("limits %q: got %d %s, want 400", limits, answer.Code, answer.Body)
		}
	}
}

// An answer that lacks a component is of another version: the check says so.
func TestAnswerWithoutTheComponent(t *testing.T) {
	t.Parallel()
	asked := &target{answer: func() (map[string]*findings, error) { return nil, nil }}
	asked.Bound.Admin = "127.0.0.1:1"
	f := newFindings()
	check{name: "hubs", there: checkHubs, alone: notAsked}.run(t.Context(), asked, f)
	if got := f.component("hubs").Detail; !strings.Contains(got, "another version") {
		t.Errorf("got %q, want that the service is of another version", got)
	}
}
