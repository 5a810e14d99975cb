package httpapi

import (
	"errors"
	"strings"
	"testing"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// Errors have the right status and type, and a message that names the problem.
func TestErrors(t *testing.T) {
	t.Parallel()
	const hub = "/v1/hubs/hub-7k2m-q4xd-93ta"
	const inv, nf = domain.CodeInvalidRequest, domain.CodeNotFound
	long := strings.Repeat("n", 201)
	tests := []struct {
		method, path, body string
		status             int
		code               domain.Code
		names              string
	}{
		{"GET", "/v1/", "", 404, nf, ""},
		{"GET", "/v1/sites%2F" + siteOne, "", 404, nf, ""},
		{"GET", "/v1/sites/" + strings.ToUpper(siteOne), "", 404, nf, ""},
		{"GET", "/v1/sites/%00", "", 404, nf, ""},
		{"GET", "/v1/sites/" + siteTwo, "", 404, nf, ""},
		{"GET", "/v1/hubs/HUB-7K2M-Q4XD-93TA", "", 404, nf, ""},
		{"GET", "/v1/hubs/" + string(hubTwo), "", 404, nf, ""},
		{"GET", "/v1/hubs/" + string(hubNone), "", 404, nf, ""},
		{"GET", "/link/v1", "", 404, nf, ""},

		{"OPTIONS", "/v1/sites", "", 405, inv, "GET, POST"},
		{"HEAD", "/v1/sites", "", 405, "", ""},
		{"BREW", hub + "/events", "", 405, inv, "GET"},
		{"CONNECT", "/v1/hubs", "", 405, inv, "GET, POST"},
		{"GET", "/link/v1/certificates", "", 405, inv, "POST"},
		{"POST", "/healthz", "", 405, inv, "GET, HEAD"},

		{"GET", "/v1/sites?limit=0", "", 400, inv, "limit: must be an integer from 1 to 50"},
		{"GET", "/v1/sites?limit=%2B5", "", 400, inv, "limit"},
		{"GET", "/v1/sites?limit=%zz", "", 400, inv, "limit"},
		{"GET", "/v1/sites?limit=1&limit=1", "", 400, inv, "limit"},
		{"GET", "/v1/sites?starting_after=x", "", 400, inv, "starting_after"},
		{"GET", "/v1/hubs?starting_after=HUB-7K2M-Q4XD-93TA", "", 400, inv, "starting_after"},
		{"GET", "/v1/hubs?site_id=", "", 400, inv, "site_id"},
		{"GET", "/v1/hubs?siteid=x", "", 400, inv, "the name is site_id"},
		{"GET", "/v1/state?Site-ID=x", "", 400, inv, "the name is site_id"},
		{"GET", "/v1/state?site_id=%00", "", 400, inv, "site_id: must be UTF-8 without control"},
		{"GET", "/v1/state?key=%ff", "", 400, inv, "key: must be UTF-8 without control"},
		{"GET", hub + "/state?at=2026-01-02T03:04:05+01:00", "", 400, inv, "%2B"},
		{"GET", hub + "/state?at=yesterday", "", 400, inv, "at: must be a timestamp such as"},
		{"GET", hub + "/state?starting_after=" + string(hubOne) + "/1/0/lock", "", 400, inv, "at: must be"},
		{"GET", hub + "/state?starting_after=x", "", 400, inv, "starting_after: must be"},
		{"GET", "/v1/state?observed_before=2026-01-02T03:04:05+01:00", "", 400, inv, "%2B"},
		{"GET", hub + "/events?limit=501", "", 400, inv, "limit: must be an integer from 1 to 500"},
		{"GET", hub + "/events?wait=61", "", 400, inv, "wait: must be an integer from 0 to 60"},
		{"GET", hub + "/events/stream?after=x", "", 400, inv, "after"},

		{"POST", "/v1/sites", `{}`, 400, inv, "name: is required"},
		{"POST", "/v1/sites", `{"name":null}`, 400, inv, "name: must be a string"},
		{"POST", "/v1/sites", `{"name":"x","name":"y"}`, 400, inv, `"name" must be given once`},
		{"POST", "/v1/sites", `{"name":"` + long + `"}`, 400, inv, "name"},
		{"POST", "/v1/sites", `{"name":"a\u0000b"}`, 400, inv, "name"},
		{"POST", "/v1/sites", `null`, 400, inv, "body"},
		{"POST", "/v1/sites", `{"name":"` + strings.Repeat("n", 64<<10) + `"}`, 400, inv, "65536"},
		{"PATCH", "/v1/sites/" + siteOne, `{}`, 400, inv, "name"},
		{"POST", "/v1/hubs", `{"site_id":"` + siteOne + `"}`, 400, inv, "serial"},
		{"POST", "/v1/hubs", `{"serial":"` + string(hubOne) + `"}`, 400, inv, "site_id"},
		{"POST", "/v1/hubs", `{"serial":"` + string(hubOne) + `","site_id":"*.>"}`, 404, nf, ""},
		{"PATCH", hub, `{}`, 400, inv, "name, site_id, or both"},
		{"PATCH", hub, `{"name":7}`, 400, inv, "name: must be a string or null"},
		{"PATCH", hub, `{"site_id":null}`, 400, inv, "site_id: must be a string"},
		{"PATCH", hub, `{"site_id":"x"}`, 404, nf, ""},
		{"PATCH", devicesPath + "/1", `{}`, 400, inv, "name, room, or both"},
		{"PATCH", devicesPath + "/1", ``, 400, inv, "Content-Type"},
		{"PATCH", devicesPath + "/1", `{"name":7}`, 400, inv, "name: must be a string or null"},
		{"POST", hub + "/pairing", `{"setup_code":null}`, 400, inv, "setup_code: must be a string"},
		{"POST", hub + "/pairing", ` `, 400, inv, "body"},
		{"POST", hub + "/reset-link", strings.Repeat("x", 64<<10+1), 400, inv, "body"},

		{
			"POST",
			"/link/v1/certificates",
			`{"serial":"` + string(hubOne) + `","secret":"wrong","csr":""}`,
			401,
			domain.CodeUnauthenticated,
			"",
		},
		{
			"POST",
			"/link/v1/certificates",
			`{"serial":"` + string(hubOne) + `"}`,
			400,
			inv,
			"secret",
		},
	}
	s := startReal(t, nil)
	for _, tt := range tests {
		a := s.do(tt.method, tt.path, tt.body)
		checkHeaders(t, a)
		if tt.method == "HEAD" {
			if a.StatusCode != tt.status || a.Header.Get("Allow") != "GET, POST" {
				t.Errorf(
					"HEAD %s: got %d, Allow %q, want %d, GET, POST", tt.path, a.StatusCode,
					a.Header.Get("Allow"), tt.status,
				)
			}
			continue
		}
		msg := wantError(t, a, tt.status, tt.code)
		if tt.status == 405 {
			if allow := a.Header.Get("Allow"); allow != tt.names {
				t.Errorf("%s %s: got Allow %q, want %q", tt.method, tt.path, allow, tt.names)
			}
		}
		if !strings.Contains(msg, tt.names) {
			t.Errorf(
				"%s %s %.60s: got message %q, want %q in it", tt.method, tt.path, tt.body, msg,
				tt.names,
			)
		}
	}
}

// A fault of the service is answered without its cause, which the log has under the same request
// id.
func TestFaults(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.fault = errors.New("connection to 10.0.0.1 refused, password hunter2")
	a := s.do("GET", "/v1/sites", "")
	msg := wantError(t, a, 500, domain.CodeInternal)
	if strings.Contains(msg, "hunter2") {
		t.Errorf("got message %s, want no secret in it", msg)
	}
	streamstest.Eventually(t, "the cause is in the log", func() bool {
		log := s.logged.String()
		return strings.Contains(log, "hunter2") &&
			strings.Contains(log, a.Header.Get("X-Request-Id"))
	})
}

// A panic is answered like other faults, and neither the process nor the connection ends.
func TestPanic(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *Config) { c.ReadModels = nil })
	a := s.do("GET", "/v1/sites", "")
	checkHeaders(t, a)
	if msg := wantError(t, a, 500, domain.CodeInternal); strings.Contains(msg, "nil") {
		t.Errorf("got message %q, want no cause in it", msg)
	}
	streamstest.Eventually(
		t, "the panic is in the log",
		func() bool { return strings.Contains(s.logged.String(), "sites.go") },
	)
}
