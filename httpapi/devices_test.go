package httpapi

import (
	"testing"
	"time"

	"hubcloud/domain"
)

const devicesPath = "/v1/hubs/" + string(hubOne) + "/devices"

// Hubs got the prefix of a DSK's QR code and line breaks as they were typed.
func TestSetupCode(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	path := "/v1/hubs/" + string(hubOne) + "/pairing"
	const body = `{"setup_code":"zws2dsk:34028-23669\n20938-46346-33746-07431-56821-14553"}`
	const want = "34028-23669-20938-46346-33746-07431-56821-14553"
	if a := s.do("POST", path, body); a.StatusCode != 202 || *s.hub.pairing != want {
		t.Errorf("got %d %s and %q at the hub, want %q", a.StatusCode, a.body, *s.hub.pairing, want)
	}
	a := s.do("POST", path, "", "Content-Type", "application/json")
	if a.StatusCode != 202 || s.hub.pairing != nil {
		t.Errorf("content type without a body: got %d, want 202 and no setup code", a.StatusCode)
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
