package contract

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"hubcloud/test/harness"
)

// TestAccess: "A missing, malformed, revoked or unknown key gets 401 unauthenticated"; "A request outside the key's scopes gets 403
// insufficient_scope, and the message names the needed scope"; "RateLimit-… on every response".
func TestAccess(t *testing.T) {
	t.Parallel()
	s := harness.Start(t)
	tenant := harness.NewTenant(t, s, "Access")

	refused := func(t *testing.T, key string, status int, errorType string) harness.Answer {
		t.Helper()
		client := harness.NewClient(t, s.Base(), key)
		answer := client.Must(http.MethodGet, "/sites", nil, status)
		if answer.ErrorType() != errorType {
			t.Errorf("error type %q, wanted %q: %s", answer.ErrorType(), errorType, answer.Body)
		}
		for _, name := range []string{"X-Request-Id", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"} {
			if answer.Header.Get(name) == "" {
				t.Errorf("no %s", name)
			}
		}
		if id := answer.Header.Get("X-Request-Id"); !strings.Contains(string(answer.Body), id) {
			t.Errorf("the error body does not name request %s: %s", id, answer.Body)
		}
		return answer
	}

	t.Run("no key, no shape, no such key", func(t *testing.T) {
		refused(t, "", http.StatusUnauthorized, "unauthenticated")
		refused(t, "hello", http.StatusUnauthorized, "unauthenticated")
		refused(t, tenant.Key[:len(tenant.Key)-1]+"!", http.StatusUnauthorized, "unauthenticated")
		refused(t, strings.Replace(tenant.Key, "_dev_", "_live_", 1), http.StatusUnauthorized, "unauthenticated")
	})

	t.Run("a scope that the key lacks is named", func(t *testing.T) {
		made := s.CLI("key", "create", "--org", tenant.Org, "--scope", "hubs:read,events:read", "--label", "narrow")[0]
		answer := refused(t, made["key"].(string), http.StatusForbidden, "insufficient_scope")
		if !strings.Contains(string(answer.Body), "sites:read") {
			t.Errorf("the message names no scope: %s", answer.Body)
		}
	})

	t.Run("a revoked key fails at once and its streams end", func(t *testing.T) {
		made := s.CLI("key", "create", "--org", tenant.Org, "--all-scopes")[0]
		client := harness.NewClient(t, s.Base(), made["key"].(string))
		client.Must(http.MethodGet, "/sites", nil, http.StatusOK)
		hub := onlineHub(t, s, tenant)
		stream := harness.OpenStream(t, client, hub.ID, "")
		s.CLI("key", "revoke", made["key_id"].(string))
		client.Must(http.MethodGet, "/sites", nil, http.StatusUnauthorized)
		select {
		case <-stream.Ended:
		case <-time.After(time.Second):
			t.Error("a revoked key's stream goes on after a second")
		}
	})

	t.Run("too many requests are told when to come back", func(t *testing.T) {
		made := s.CLI("key", "create", "--org", tenant.Org, "--all-scopes")[0]
		client := harness.NewClient(t, s.Base(), made["key"].(string))
		for range 300 {
			answer, err := client.Do(http.MethodGet, "/sites", nil)
			if err != nil {
				t.Fatal(err)
			}
			if answer.Status == http.StatusTooManyRequests {
				if answer.ErrorType() != "rate_limited" || answer.Header.Get("Retry-After") == "" {
					t.Errorf("%v %s", answer.Header, answer.Body)
				}
				return
			}
		}
		t.Error("300 requests in a row and no 429")
	})

	t.Run("unknown paths and methods have the error body", func(t *testing.T) {
		if answer := tenant.Must(http.MethodGet, "/nothing", nil, http.StatusNotFound); answer.ErrorType() != "not_found" {
			t.Errorf("%s", answer.Body)
		}
		answer := tenant.Must(http.MethodPut, "/sites", nil, http.StatusMethodNotAllowed)
		if answer.ErrorType() != "invalid_request" || answer.Header.Get("Allow") == "" {
			t.Errorf("%v %s", answer.Header, answer.Body)
		}
	})
}

// onlineHub gives a connected hub that belongs to the tenant.
func onlineHub(t *testing.T, s *harness.Service, tenant *harness.Tenant) *harness.RawHub {
	t.Helper()
	hub := harness.NewRawHub(t, s)
	hub.Enroll()
	hub.Connect()
	hub.Hello("log-1", 1, 0)
	hub.WaitAck("log-1", 0)
	tenant.Add(hub.Serial)
	return hub
}
