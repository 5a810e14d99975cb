package contract

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"hubcloud/test/harness"
)

// limits holds the rows of the table "Limits" about requests; the other rows are held where they belong.
func limits(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Limits")

	t.Run("rate headers on every response", func(t *testing.T) {
		// "RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset on every response."
		client := tenant.Client.For(t)
		for _, request := range []struct {
			method, path string
			status       int
			header       []string
		}{
			{http.MethodGet, "/sites", http.StatusOK, nil},
			{http.MethodGet, "/sites?limit=0", http.StatusBadRequest, nil},
			{http.MethodGet, "/sites", http.StatusUnauthorized, []string{"Authorization", ""}},
			{http.MethodGet, "/hubs/" + noHub, http.StatusNotFound, nil},
			{http.MethodGet, "/nothing", http.StatusNotFound, nil},
			{http.MethodPut, "/sites", http.StatusMethodNotAllowed, nil},
		} {
			answer := client.Must(request.method, request.path, nil, request.status, request.header...)
			for _, name := range []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"} {
				if n, err := strconv.Atoi(answer.Header.Get(name)); err != nil || n < 0 {
					t.Errorf("%s %s (%d): %s is %q", request.method, request.path, answer.Status, name, answer.Header.Get(name))
				}
			}
			if answer.Header.Get("X-Request-Id") == "" {
				t.Errorf("%s %s (%d): no X-Request-Id", request.method, request.path, answer.Status)
			}
		}
	})

	t.Run("50 per second, bursts up to 100, per API key", func(t *testing.T) {
		s := c.For(t).Own()
		_, key := s.Key(tenant.Org)
		_, otherKey := s.Key(tenant.Org)
		_, narrowKey := s.Key(tenant.Org, "hubs:read")
		client, other, narrow := harness.NewClient(t, c.Base, key), harness.NewClient(t, c.Base, otherKey), harness.NewClient(t, c.Base, narrowKey)

		began := time.Now()
		granted := 0
		var refused harness.Answer
		for refused.Status != http.StatusTooManyRequests {
			answer, err := client.Do(http.MethodGet, "/sites", nil)
			if err != nil {
				t.Fatal(err)
			}
			if answer.Status == http.StatusOK {
				granted++
			}
			if answer.Header.Get("RateLimit-Limit") != "100" {
				t.Fatalf("RateLimit-Limit %q", answer.Header.Get("RateLimit-Limit"))
			}
			if granted > 5000 {
				t.Fatal("5000 requests in a row and no 429")
			}
			refused = answer
		}
		took := time.Since(began)
		if most := 100 + int(took.Seconds()*50) + 2; granted < 100 || granted > most {
			t.Errorf("%d requests were granted in %s, wanted 100 to %d", granted, took, most)
		}
		// "429 rate_limited with Retry-After (seconds)."
		harness.CheckRefusal(t, refused)
		wait, err := strconv.Atoi(refused.Header.Get("Retry-After"))
		if refused.ErrorType() != "rate_limited" || err != nil || wait < 1 || wait > 3 || refused.Header.Get("RateLimit-Remaining") != "0" {
			t.Errorf("%v %s", refused.Header, refused.Body)
		}
		other.Must(http.MethodGet, "/sites", nil, http.StatusOK)
		time.Sleep(time.Duration(wait) * time.Second) // what the service itself asks for
		if answer, err := client.Do(http.MethodGet, "/sites", nil); err != nil || answer.Status != http.StatusOK {
			t.Errorf("after the wait that was asked for: %d %s %v", answer.Status, answer.Body, err)
		}

		// 429 comes before 403 (design, section 6), and a refused request counts.
		for range 5000 {
			answer, err := narrow.Do(http.MethodGet, "/sites", nil)
			if err != nil {
				t.Fatal(err)
			}
			if answer.Status == http.StatusTooManyRequests {
				return
			}
			if answer.Status != http.StatusForbidden {
				t.Fatalf("%d %s", answer.Status, answer.Body)
			}
		}
		t.Error("5000 requests outside the key's scopes and no 429")
	})
}
