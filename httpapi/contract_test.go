package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"hubcloud/domain"
	"hubcloud/projections/projectionstest"
	"hubcloud/streams/streamstest"
)

// Responses about sites and hubs have exactly the contract's fields, in its order.
func TestForms(t *testing.T) {
	t.Parallel()
	const (
		site   = `{"id":"` + siteOne + `","name":"Mill","hub_count":1,"created_at":"TIME"}`
		barn   = `{"id":"` + siteOne + `","name":"Barn","hub_count":1,"created_at":"TIME"}`
		made   = `{"id":"NEW","name":"A <b>","hub_count":0,"created_at":"TIME"}`
		inList = `{"id":"hub-7k2m-q4xd-93ta","name":null,"site_id":"` + siteOne + `",` +
			`"connection":{"status":"online","since":"TIME"},"registered_at":"TIME"}`
		head = `{"id":"hub-7k2m-q4xd-93ta","name":`
		tail = `,"site_id":"` + siteOne + `","connection":{"status":"online","since":"TIME",` +
			`"public_ip":"192.0.2.7","disconnect_reason":null},"firmware":{"version":"2.4.1"},` +
			`"network":null,"registered_at":"TIME"}`
		empty = `{"data":[],"has_more":false}`
		hub   = "/v1/hubs/" + string(hubOne)
	)
	s := startReal(t, nil)
	projectionstest.Shared().Env.PutPresence(t, domain.Presence{
		HubID: s.hub.id, Online: true, Since: day, PublicIP: "192.0.2.7",
		Firmware: json.RawMessage(`{"version":"2.4.1"}`),
	})
	streamstest.Eventually(t, "the hub has its firmware", func() bool {
		return strings.Contains(s.do("GET", hub, "").body, "2.4.1")
	})
	inSite := func(serial, more string) string {
		return `{"serial":"` + serial + `","site_id":"` + siteOne + `"` + more + `}`
	}
	checkForms(t, s, []formTest{
		{"GET", "/v1/sites", "", 200, `{"data":[` + site + `],"has_more":false}`},
		{"GET", "/v1/sites?limit=50&_=17", "", 200, `{"data":[` + site + `],"has_more":false}`},
		{"GET", "/v1/sites?starting_after=" + siteOne, "", 200, empty},
		{"GET", "/v1/sites/" + siteOne, "", 200, site},
		{"POST", "/v1/sites", `{"name":" A <b> "}`, 201, made},
		{"PATCH", "/v1/sites/" + siteOne, `{"name":"Barn"}`, 200, barn},

		{"GET", "/v1/hubs", "", 200, `{"data":[` + inList + `],"has_more":false}`},
		{
			"GET",
			"/v1/hubs?site_id=" + siteOne,
			"",
			200,
			`{"data":[` + inList + `],"has_more":false}`,
		},
		{"GET", "/v1/hubs?site_id=" + siteTwo, "", 200, empty},
		{"GET", "/v1/hubs?site_id=nowhere", "", 200, empty},
		{"GET", hub, "", 200, head + `null` + tail},
		{"POST", "/v1/hubs", inSite("HUB-7K2M-Q4XD-93TA", ""), 200, head + `null` + tail},
		{"POST", "/v1/hubs", inSite(string(hubOne), `,"name":"Roof"`), 200, head + `"Roof"` + tail},
		{"PATCH", hub, `{"site_id":"` + siteOne + `"}`, 200, head + `"Roof"` + tail},
		{"PATCH", hub, `{"name":null}`, 200, head + `null` + tail},
		{"POST", hub + "/reset-link", "", 204, ""},
		{"POST", hub + "/reset-link", `not JSON, and not looked at`, 204, ""},
		{"GET", hub + "/events", "", 200, `{"data":[],"next_cursor":"c0","has_more":false}`},

		{
			"POST", "/link/v1/certificates",
			`{"serial":"HUB-7K2M-Q4XD-93TA","secret":"right","csr":"","model":"next year's"}`, 201,
			`{"hub_id":"HUB-7K2M-Q4XD-93TA","certificate":"x","ca":"x",` +
				`"broker":"mqtts://127.0.0.1:8883","expires_at":"TIME"}`,
		},
		{
			"GET", "/healthz", "", 200,
			`{"ok":true,"version":"","commit":"","build_date":"","go":"","schema":""}`,
		},
		{"HEAD", "/healthz", "", 200, ""},
		{"GET", "/readyz", "", 200, `{"status":"ready"}`},
	})
}

// An escaped path is the same path.
func TestEscapedPath(t *testing.T) {
	t.Parallel()
	const path = "/v1/h%75bs/hub%2D7k2m-q4xd-93t%61/devices/2"
	if a := start(t, nil).do("GET", path, ""); a.StatusCode != 200 {
		t.Errorf("GET %s: got %d %s, want 200", path, a.StatusCode, a.body)
	}
}

// checkHeaders checks the header fields that every answer has.
func checkHeaders(t *testing.T, a answer) {
	t.Helper()
	if _, err := ulid.ParseStrict(a.Header.Get("X-Request-Id")); err != nil {
		t.Errorf(
			"%s %s: got X-Request-Id %q, %v, want a ULID", a.Request.Method, a.Request.URL,
			a.Header.Get("X-Request-Id"), err,
		)
	}
	// Proxies and browsers were free to store answers with the state of locks.
	document := a.StatusCode == 200 && a.Header.Get("Content-Type") != "application/json"
	if a.Header.Get("Cache-Control") != "no-store" && !document ||
		a.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf(
			"%s %s: got Cache-Control %q and X-Content-Type-Options %q, want no-store and nosniff",
			a.Request.Method, a.Request.URL, a.Header.Get("Cache-Control"),
			a.Header.Get("X-Content-Type-Options"),
		)
	}
	limited := a.Request.URL.Path != "/healthz" && a.Request.URL.Path != "/readyz"
	for _, name := range []string{
		"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "RateLimit-Policy",
	} {
		if given := a.Header.Get(name) != ""; given != limited {
			t.Errorf(
				"%s %s: got %s %q, want it set: %t", a.Request.Method, a.Request.URL, name,
				a.Header.Get(name), limited,
			)
		}
	}
}

// The page has the contract's form, paging and bounds.
func TestEventPage(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.emit(3, 0)
	event := func(n string) string {
		return `{"cursor":"c` + n + `","type":"channel.observed","data":{"x":""}}`
	}
	page := func(next string, more bool, numbers ...string) string {
		events := make([]string, 0, len(numbers))
		for _, n := range numbers {
			events = append(events, event(n))
		}
		return fmt.Sprintf(
			`{"data":[%s],"next_cursor":%q,"has_more":%t}`, strings.Join(events, ","), next, more,
		)
	}
	path := "/v1/hubs/" + string(hubOne) + "/events"
	for query, want := range map[string]string{
		"":                         page("c3", false, "1", "2", "3"),
		"?limit=2":                 page("c2", true, "1", "2"),
		"?after=c2&limit=500":      page("c3", false, "3"),
		"?after=c2&wait=60":        page("c3", false, "3"),
		"?%61fter=c%32&wait=0&x=%": page("c3", false, "3"),
	} {
		a := s.do("GET", path+query, "")
		if a.StatusCode != 200 || a.body != want || a.ContentLength != int64(len(want)) {
			t.Errorf("%s: got %d %s, want 200 %s", query, a.StatusCode, a.body, want)
		}
	}
	msg := wantError(t, s.do("GET", path+"?after=old", ""), 410, domain.CodeCursorExpired)
	if !strings.Contains(msg, "after") {
		t.Errorf("got message %q, want after in it", msg)
	}
}

// A component that is not healthy makes the process not ready, and so does stopping. The public
// port used to name every component to everyone and to query the database for each request.
func TestReadiness(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	var component atomic.Pointer[Component]
	inBubble(t, func(c *Config) {
		c.Ready = func(context.Context) []Component {
			asked.Add(1)
			time.Sleep(10 * time.Millisecond)
			return []Component{*component.Load()}
		}
	}, func(s *service, _ *pipeListener) {
		expect := func(status int, public, details string) {
			t.Helper()
			time.Sleep(readinessAge)
			if a := s.do("GET", "/readyz", "", "Authorization", ""); a.StatusCode != status ||
				strings.TrimSpace(a.body) != public {
				t.Errorf("got %d %s, want %d %s", a.StatusCode, a.body, status, public)
			}
			answer := httptest.NewRecorder()
			s.api.Readiness().ServeHTTP(answer, httptest.NewRequest("GET", "/readyz", nil))
			if answer.Code != status || strings.TrimSpace(answer.Body.String()) != details {
				t.Errorf(
					"for operators: got %d %s, want %d %s", answer.Code, answer.Body, status,
					details,
				)
			}
		}
		component.Store(&Component{Name: "broker", OK: true, Detail: "16 shards"})
		const ok = `{"name":"broker","ok":true,"degraded":false,"detail":"16 shards","action":""}`
		expect(200, `{"status":"ready"}`, `{"ready":true,"degraded":false,"components":[`+ok+`]}`)
		component.Store(&Component{Name: "broker", Detail: "16 shards"})
		expect(
			503, `{"status":"not_ready"}`,
			`{"ready":false,"degraded":false,"components":[{"name":"broker","ok":false,`+
				`"degraded":false,"detail":"16 shards","action":""}]}`,
		)
		// a degraded component does not keep the process from serving
		component.Store(&Component{Name: "broker", Degraded: true, Detail: "16 shards"})
		expect(
			200, `{"status":"degraded","degraded":["broker"]}`,
			`{"ready":true,"degraded":true,"components":[{"name":"broker","ok":false,`+
				`"degraded":true,"detail":"16 shards","action":""}]}`,
		)
		component.Store(&Component{Name: "broker", OK: true, Detail: "16 shards"})

		time.Sleep(readinessAge)
		before := asked.Load()
		var asking sync.WaitGroup
		for range 50 {
			asking.Go(func() {
				if a := s.do("GET", "/readyz", "", "Authorization", ""); a.StatusCode != 200 ||
					strings.TrimSpace(a.body) != `{"status":"ready"}` {
					t.Errorf("ready: got %d %s, want 200", a.StatusCode, a.body)
				}
			})
		}
		asking.Wait()
		if n := asked.Load() - before; n != 1 {
			t.Errorf("50 concurrent requests: got %d checks of the components, want 1", n)
		}
		s.drain() // is answered at once, whatever was asked a moment ago
		if a := s.do("GET", "/readyz", "", "Authorization", ""); a.StatusCode != 503 ||
			strings.TrimSpace(a.body) != `{"status":"not_ready"}` {
			t.Errorf("stopping: got %d %s, want 503", a.StatusCode, a.body)
		}
		expect(
			503, `{"status":"not_ready"}`,
			`{"ready":false,"degraded":false,"components":[`+ok+`,{"name":"http","ok":false,`+
				`"degraded":false,"detail":"stopping","action":""}]}`,
		)
		if a := s.do("GET", "/healthz", ""); a.StatusCode != 200 {
			t.Errorf("healthz: got %d, want 200", a.StatusCode)
		}
	})
}
