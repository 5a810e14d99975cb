package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A request waits for an event no longer than it asked for, and not after the service stops or the
// key is revoked.
func TestLongPoll(t *testing.T) {
	t.Parallel()
	const path = "/v1/hubs/" + string(hubOne) + "/events?after=c0&wait=60"
	const empty = `{"data":[],"next_cursor":"c0","has_more":false}`
	for name, tt := range map[string]struct {
		cause  func(*service)
		status int
		body   string
		after  time.Duration
	}{
		"nothing comes": {func(*service) {}, 200, empty, time.Minute},
		"an event comes": {
			func(s *service) { s.emit(1, 0) }, 200, `"next_cursor":"c1"`, 20 * time.Second,
		},
		"the service stops": {func(s *service) { s.drain() }, 200, empty, 20 * time.Second},
		"the key is revoked": {
			func(s *service) { s.revoke() }, 401, "unauthenticated", 20 * time.Second,
		},
		// The former owner's request got an event of the next owner if it began to follow the log,
		// or followed it again at its new end, at the moment of the change.
		"the hub goes to another organization": {
			func(s *service) {
				s.give(hubOne, orgTwo)
				s.emit(1, 0)
			}, 404, "not_found", 20 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(s *service, _ *pipeListener) {
				began := time.Now()
				time.AfterFunc(20*time.Second, func() { tt.cause(s) })
				a := s.do("GET", path, "")
				if took := time.Since(began); took != tt.after {
					t.Errorf("answered after %s, want %s", took, tt.after)
				}
				if a.StatusCode != tt.status || !strings.Contains(a.body, tt.body) {
					t.Errorf("got %d %s, want %d %s", a.StatusCode, a.body, tt.status, tt.body)
				}
			})
		})
	}
}

// A client that disconnects ends the wait and is not logged as an error.
func TestLongPollClientGone(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(s *service, _ *pipeListener) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		req, _ := http.NewRequestWithContext(
			ctx, "GET", s.base+"/v1/hubs/"+string(hubOne)+"/events?wait=60", nil,
		)
		req.Header.Set("Authorization", s.bearer)
		if _, err := s.client.Do(req); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want the context's deadline", err)
		}
		synctest.Wait()
		if log := s.logged.String(); !strings.Contains(log, `"status":499`) ||
			strings.Contains(log, `"level":"ERROR"`) {
			t.Errorf("got log %s, want status 499 and no error", log)
		}
	})
}
