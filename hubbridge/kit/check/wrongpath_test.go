package check_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"hubcloud/hubbridge/kit/check"
	"hubcloud/streams/streamstest"
)

// A hub that is configured with a wrong address learns so: its enrolment fails at "enrols". A
// person who opens the address in a browser changes nothing.
func TestWrongPath(t *testing.T) {
	t.Parallel()
	failed := make(chan check.Result, len(check.Lines()))
	checked := newCheck(t, check.Config{
		Only: []string{"enrols"}, Timeout: time.Minute,
		OnLine: func(r check.Result) { failed <- r },
	})
	run(t, checked)
	client := &http.Client{Timeout: time.Minute}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		request, err := http.NewRequestWithContext(
			t.Context(), method, checked.EnrolURL()+"/v1/link/v1/certificates", strings.NewReader("{}"),
		)
		streamstest.Must(t, err)
		answer, err := client.Do(request)
		streamstest.Must(t, err)
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s: got status %d, want 404", method, answer.StatusCode)
		}
		if method == http.MethodGet && len(failed) > 0 {
			t.Errorf("%s: got %+v, want no result", method, <-failed)
		}
	}
	if r := <-failed; r.ID != "enrols" || r.Status != check.Failed ||
		!strings.Contains(r.Detail, "/v1/link/v1/certificates") {
		t.Errorf("got %+v, want enrols failed with the path", r)
	}
	client.CloseIdleConnections()
}
