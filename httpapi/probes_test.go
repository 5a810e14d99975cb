package httpapi

import (
	"testing"
	"time"

	"hubcloud/domain"
)

// Probes had no limit: one address held gigabytes of answers that it did not read. They count apart
// from other requests, so that a balancer does not lose a replica because of what it forwards.
func TestProbesAreLimited(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *Config) { c.Now = func() time.Time { return day } })
	for n := range probeBurst * 2 {
		a := s.do("GET", "/healthz", "")
		if a.StatusCode == 200 {
			continue
		}
		wantError(t, a, 429, domain.CodeRateLimited)
		if n < probeBurst || a.Header.Get("Retry-After") == "" {
			t.Errorf("probe %d: got %d, header %v, want 200, or 429 with Retry-After", n, a.StatusCode,
				a.Header)
		}
		if a := s.do("GET", "/v1/sites", ""); a.StatusCode != 200 {
			t.Errorf("another request: got %d, want 200", a.StatusCode)
		}
		return
	}
	t.Errorf("got %d probes answered, want at most some %d", 2*probeBurst, probeBurst)
}
