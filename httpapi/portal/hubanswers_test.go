package portal_test

import (
	"bufio"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/portal"
	"hubcloud/streams/streamstest"
)

// The page of a hub that does not answer is shown without devices, and with the reason.
func TestHubDoesNotAnswer(t *testing.T) {
	t.Parallel()
	b := newHubBackend(t)
	for code, says := range map[domain.Code]string{
		domain.CodeHubOffline: "The hub is offline", domain.CodeHubTimeout: "Took too long",
		domain.CodeHubUnavailable: "Took too long",
	} {
		b.fails = domain.Errorf(code, "took too long")
		response := b.ask("GET", b.path, nil)
		if page := read(t, response); response.StatusCode != http.StatusOK ||
			!strings.Contains(page, says) ||
			!strings.Contains(page, "2.4.1") {
			t.Errorf("%s: got %d %s, want 200 and %q", code, response.StatusCode, page, says)
		}
	}
	b.fails = errors.New("postgres is away")
	if response := b.ask(
		"GET", b.path, nil,
	); response.StatusCode != http.StatusInternalServerError {
		t.Errorf("fault: got %d, want 500", response.StatusCode)
	}
}

// A page's stream requires membership and the session's form token, and ends when the session ends.
func TestPageStream(t *testing.T) {
	t.Parallel()
	b := newHubBackend(t)
	streamstest.Run(t, "sessions", b.sessions.Run)
	server := httptest.NewServer(b.serve())
	defer server.Close()
	post := func(token, session string) *http.Response {
		r, err := http.NewRequestWithContext(
			t.Context(),
			"POST",
			server.URL+"/portal/"+b.ID+"/stream",
			strings.NewReader(url.Values{
				"form_token": {token}, "position": {"none"},
			}.Encode()),
		)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.AddCookie(&http.Cookie{Name: "hubcloud_session", Value: session})
		client := http.Client{
			Transport: server.Client().Transport,
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			},
		}
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	forged, nobody := post("x", b.token), post(portal.MaskToken(formToken), "x")
	defer forged.Body.Close()
	defer nobody.Body.Close()
	if forged.StatusCode != http.StatusForbidden || nobody.StatusCode != http.StatusSeeOther {
		t.Errorf(
			"forged form: got %d, want 403; no session: got %d, want 303", forged.StatusCode,
			nobody.StatusCode,
		)
	}
	stream := post(portal.MaskToken(formToken), b.token)
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	var text []string
	want := []string{
		"id: position", "", "event: hub.portal_begin", `data: {"anew":true}`, "",
		"event: hub.portal_states",
	}
	for len(text) < len(want) && lines.Scan() {
		text = append(text, lines.Text())
	}
	if stream.Header.Get("Content-Type") != "text/event-stream" || !slices.Equal(text, want) {
		t.Errorf("got stream %q, want %q", text, want)
	}
	// The stream must end with the sign-out, not with the next keepalive.
	if err := b.sessions.End(t.Context(), b.token); err != nil {
		t.Fatal(err)
	}
	signedOut := time.Now()
	for lines.Scan() {
		text = append(text, lines.Text())
	}
	if err := lines.Err(); err != nil {
		t.Errorf("end of the stream: got %v, want nil", err)
	}
	if took := time.Since(signedOut); took > 25*time.Second { // the next keepalive is after 30 s
		t.Errorf("end of the stream: got it after %v, want it before the next keepalive", took)
	}
}
