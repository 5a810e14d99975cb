package httpapi

import (
	"context"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
)

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

// A component that is not healthy makes the process not ready, and so does stopping. The public
// port names no component, and does not query the database for each request.
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
