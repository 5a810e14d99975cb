package httpapi

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
)

const devicesPath = "/v1/hubs/" + string(hubOne) + "/devices"

// The hub gets the setup code that was sent, and none for an absent or empty body.
func TestSetupCode(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	path := "/v1/hubs/" + string(hubOne) + "/pairing"
	qr := "90" + strings.Repeat("0123456789", 12)
	for body, want := range map[string]*string{
		"": nil, "{}": nil, `{"setup_code":"01234"}`: text("01234"),
		`{"setup_code":"` + qr + `"}`: &qr,
		// Hubs got the prefix of a DSK's QR code and line breaks as they were typed.
		`{"setup_code":"zws2dsk:34028-23669\n20938-46346-33746-07431-56821-14553"}`: text(
			"34028-23669-20938-46346-33746-07431-56821-14553",
		),
	} {
		if a := s.do("POST", path, body); a.StatusCode != 202 {
			t.Errorf("%s: got %d %s, want 202", body, a.StatusCode, a.body)
		}
		got := s.hub.pairing
		if (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%s: the hub got setup code %v, want %v", body, got, want)
		}
	}
	req, _ := http.NewRequest("POST", s.base+path, http.NoBody)
	req.Header = http.Header{"Authorization": {s.bearer}, "Content-Type": {"application/json"}}
	res, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 202 || s.hub.pairing != nil {
		t.Errorf("content type without a body: got %d, want 202 and no setup code", res.StatusCode)
	}
}

// Errors have the right status and type and a message that names the problem, and the hub is not
// asked needlessly.
func TestDeviceErrors(t *testing.T) {
	t.Parallel()
	const inv, nf = domain.CodeInvalidRequest, domain.CodeNotFound
	const hub = "/v1/hubs/" + string(hubOne)
	s := startReal(t, nil)
	for _, tt := range []struct {
		method, path, body string
		status             int
		code               domain.Code
		names              string
		asked              int
	}{
		{"GET", devicesPath + "/3", "", 404, nf, "device", 1},
		{"DELETE", devicesPath + "/1", "", 400, inv, "network", 1},
		{"GET", devicesPath + "/1.0", "", 404, nf, "device", 0},
		{"GET", devicesPath + "/01", "", 404, nf, "device", 0},
		{"GET", devicesPath + "/9223372036854775808", "", 404, nf, "device", 0},
		{"GET", devicesPath + "/", "", 404, nf, "", 0},
		{"GET", devicesPath + "/1/commands/", "", 404, nf, "", 0},
		{"PATCH", devicesPath + "/1", `{}`, 400, inv, "name, room, or both", 0},
		{"PATCH", devicesPath + "/1", ``, 400, inv, "Content-Type", 0},
		{"PATCH", devicesPath + "/1", `{"name":7}`, 400, inv, "name: must be a string or null", 0},
		{"POST", devicesPath, "", 405, inv, "GET", 0},
		{"GET", hub + "/pairing", "", 405, inv, "DELETE, POST", 0},
		{
			"POST", hub + "/pairing", `{"setup_code":null}`, 400, inv,
			"setup_code: must be a string", 0,
		},
		{
			"POST", hub + "/pairing", `{"pin":"12345"}`, 400, inv,
			`unknown field "pin"; allowed fields are setup_code`, 0,
		},
		{"POST", hub + "/pairing", ` `, 400, inv, "body", 0},
	} {
		before := s.hub.asked
		a := s.do(tt.method, tt.path, tt.body)
		checkHeaders(t, a)
		if msg := wantError(t, a, tt.status, tt.code); !strings.Contains(msg, tt.names) {
			t.Errorf(
				"%s %s %.60s: got message %q, want %q in it", tt.method, tt.path, tt.body, msg,
				tt.names,
			)
		}
		if got := s.hub.asked - before; got != tt.asked {
			t.Errorf(
				"%s %s %.60s: the hub got %d requests, want %d", tt.method, tt.path, tt.body, got,
				tt.asked,
			)
		}
	}
	a := s.do("POST", hub+"/pairing", `{"setup_code":"1"}`, "Content-Type", "text/plain")
	if a.StatusCode != 400 {
		t.Errorf("setup code as text: got %d, want 400", a.StatusCode)
	}
}

// A request that waits for a hub twice, each time up to the timeout, is still answered.
func TestSlowHub(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *Config) { c.HubTimeout = time.Minute }, func(s *service, _ *pipeListener) {
		s.hub.takes = 2 * time.Minute
		began := time.Now()
		a := s.do("GET", devicesPath+"/1", "")
		if took := time.Since(began); a.StatusCode != 200 || took != s.hub.takes {
			t.Errorf("got %d after %s, want 200 after %s", a.StatusCode, took, s.hub.takes)
		}
		s.hub.takes = time.Hour
		began = time.Now()
		wantError(t, s.do("GET", devicesPath+"/1", ""), 503, domain.CodeServiceUnavailable)
		if took := time.Since(began); took > 3*time.Minute {
			t.Errorf("gave up after %s, want at most 3 min", took)
		}
	})
}
