package httpapi

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"hubcloud/domain"
)

// The limits are the contract's, and errors are checked in the order 401, 429, 403, 404.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now := day // stands still: nothing comes back
	s := start(t, func(c *Config) {
		c.Rate, c.Burst = 0, 0
		c.Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return now
		}
	})
	poor, _ := s.addKey(orgOne, 2)
	expect := func(a answer, status int, remaining, reset int) {
		t.Helper()
		if a.StatusCode != status {
			t.Fatalf("%s: status %d, want %d", a.Request.URL, a.StatusCode, status)
		}
		for name, want := range map[string]string{
			"RateLimit-Limit": "100", "RateLimit-Remaining": strconv.Itoa(remaining),
			"RateLimit-Reset":  strconv.Itoa(reset),
			"RateLimit-Policy": "100;w=2",
		} {
			if got := a.Header.Get(name); got != want {
				t.Errorf("%s %s: %s %q, want %q", a.Request.Method, a.Request.URL, name, got, want)
			}
		}
	}
	paths := []string{"/v1/sites", "/v1/none", "/v1/sites?limit=x"}
	statuses := []int{200, 404, 400}
	for i := range 100 {
		expect(s.do("GET", paths[i%3], ""), statuses[i%3], 99-i, 1+i/50)
	}
	for _, path := range []string{"/v1/sites", "/v1/none", "/v1/hubs/x"} {
		a := s.do("GET", path, "")
		expect(a, 429, 0, 2)
		wantError(t, a, 429, domain.CodeRateLimited)
		if a.Header.Get("Retry-After") != "1" {
			t.Errorf("got Retry-After %q, want 1", a.Header.Get("Retry-After"))
		}
	}

	// Another key has its own bucket, which requests without the scope count on as well.
	for i := range 100 {
		a := s.do("GET", "/v1/sites", "", "Authorization", poor)
		expect(a, 403, 99-i, 1+i/50)
		msg := wantError(t, a, 403, domain.CodeInsufficientScope)
		if msg != "the API key does not have the scope sites:read" {
			t.Fatalf("got message %q, want the missing scope", msg)
		}
	}
	expect(s.do("GET", "/v1/sites", "", "Authorization", poor), 429, 0, 2)

	// Neither key counted on the address. Enrolment and invalid keys count on it together, and do
	// not affect valid keys.
	for i := range 100 {
		if i%2 == 0 {
			a := s.do("GET", "/v1/none", "", "Authorization", fmt.Sprintf("Bearer %d", i))
			expect(a, 401, 99-i, 1+i/50)
			wantError(t, a, 401, domain.CodeUnauthenticated)
		} else {
			a := s.do("POST", "/link/v1/certificates", "{}", "Authorization", "")
			expect(a, 400, 99-i, 1+i/50)
		}
	}
	expect(s.do("GET", "/v1/sites", "", "Authorization", ""), 429, 0, 2)
	expect(s.do("POST", "/link/v1/certificates", "{}"), 429, 0, 2)
	fresh, _ := s.addKey(orgOne, 3, domain.ScopeSitesRead)
	expect(s.do("GET", "/v1/sites", "", "Authorization", fresh), 200, 99, 1)

	// Regained tokens can be used.
	mu.Lock()
	now = now.Add(20 * time.Millisecond)
	mu.Unlock()
	expect(s.do("GET", "/v1/sites", ""), 200, 0, 2)
	expect(s.do("GET", "/v1/sites", ""), 429, 0, 2)
}

// A client in a loop that did not read Retry-After took the processors from everyone else, with nothing but
// rejections. They wait once there are many of them.
func TestRejectedRequestsWait(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *Config) { c.Rate, c.Burst, c.Now = 1, 1, func() time.Time { return day } })
	reject := func(count int) time.Duration {
		began := time.Now()
		for range count {
			wantError(t, s.do("GET", "/v1/none", ""), 429, domain.CodeRateLimited)
		}
		return time.Since(began)
	}
	s.do("GET", "/v1/none", "")
	reject(rejectedBurst)
	// Each waits until one more may be rejected: 20 ms, 40 ms, 60 ms and so on.
	if took := reject(10); took < 10*11/2*time.Second/rejectedPerSecond {
		t.Errorf("10 rejections after %d others: took %s, want that they wait", rejectedBurst, took)
	}
}
