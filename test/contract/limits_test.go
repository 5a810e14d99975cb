package contract

import (
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"hubcloud/hubbridge/commands"
	"hubcloud/test/harness"
)

// limits tests the rows of the table "Limits" about requests. Other parts test the other rows.
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
			answer := client.Must(
				request.method,
				request.path,
				nil,
				request.status,
				request.header...)
			for _, name := range []string{
				"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset",
			} {
				if n, err := strconv.Atoi(answer.Header.Get(name)); err != nil || n < 0 {
					t.Errorf(
						"%s %s (%d): got %s %q, want a number", request.method, request.path,
						answer.Status, name, answer.Header.Get(name),
					)
				}
			}
			if answer.Header.Get("X-Request-Id") == "" {
				t.Errorf(
					"%s %s (%d): got no X-Request-Id", request.method, request.path, answer.Status,
				)
			}
		}
	})

	t.Run("50 per second, bursts up to 100, per API key", func(t *testing.T) {
		s := c.For(t).OwnService()
		_, key := s.Key(tenant.Org)
		_, otherKey := s.Key(tenant.Org)
		_, narrowKey := s.Key(tenant.Org, "hubs:read")
		client := harness.NewClient(t, c.Base, key)
		other := harness.NewClient(t, c.Base, otherKey)
		narrow := harness.NewClient(t, c.Base, narrowKey)

		began := time.Now()
		granted := 0
		var rejected harness.Answer
		// A busy machine answers fewer than 50 a second one after the other.
		for rejected.Status != http.StatusTooManyRequests {
			for _, answer := range atOnce(t, 40, func(int) (harness.Answer, error) {
				return client.Do(http.MethodGet, "/sites", nil)
			}) {
				switch answer.Status {
				case http.StatusOK:
					granted++
				case http.StatusTooManyRequests:
					rejected = answer
				}
				if answer.Header.Get("RateLimit-Limit") != "100" {
					t.Fatalf("RateLimit-Limit: got %q, want 100", answer.Header.Get("RateLimit-Limit"))
				}
			}
			if granted > 5000 {
				t.Fatal("5000 requests in a row: got no 429")
			}
		}
		took := time.Since(began)
		if most := 100 + int(took.Seconds()*50) + 2; granted < 100 || granted > most {
			t.Errorf("got %d successful requests in %s, want 100 to %d", granted, took, most)
		}
		// "429 rate_limited with Retry-After (seconds)."
		harness.CheckAPIError(t, rejected)
		wait, err := strconv.Atoi(rejected.Header.Get("Retry-After"))
		if rejected.ErrorType() != "rate_limited" || err != nil || wait < 1 || wait > 3 ||
			rejected.Header.Get("RateLimit-Remaining") != "0" {
			t.Errorf(
				"rejected request: got %v %s, want rate_limited and Retry-After", rejected.Header,
				rejected.Body,
			)
		}
		other.Get("/sites")
		harness.Must(t, harness.AwaitRetryAfter(rejected.Header))
		if answer, err := client.Do(http.MethodGet, "/sites", nil); err != nil ||
			answer.Status != http.StatusOK {
			t.Errorf("after Retry-After: got %d %s %v, want 200", answer.Status, answer.Body, err)
		}

		// 429 comes before 403 (design, section 6), and a rejected request counts.
		for range 5000 / 40 {
			limited := false
			for _, answer := range atOnce(t, 40, func(int) (harness.Answer, error) {
				return narrow.Do(http.MethodGet, "/sites", nil)
			}) {
				if limited = limited || answer.Status == http.StatusTooManyRequests; limited {
					continue
				}
				if answer.Status != http.StatusForbidden {
					t.Fatalf(
						"outside the scopes: got %d %s, want 403 or 429", answer.Status, answer.Body,
					)
				}
			}
			if limited {
				return
			}
		}
		t.Error("5000 requests outside the key's scopes: got no 429")
	})
}

// quotas tests the quotas of one organization: above a quota it gets `429 rate_limited` with
// `Retry-After` at once, and other organizations are not affected.
func quotas(t *testing.T, c *harness.Target) {
	limited := func(
		t *testing.T, client *harness.Client, method, path string, body any, header ...string,
	) {
		t.Helper()
		// Must would repeat a rate-limited request.
		answer, err := client.Do(method, path, body, header...)
		harness.Must(t, err)
		wait, err := strconv.Atoi(answer.Header.Get("Retry-After"))
		if answer.Status != http.StatusTooManyRequests || answer.ErrorType() != "rate_limited" ||
			err != nil ||
			wait < 1 {
			t.Errorf(
				"%s %s: got %d %s, Retry-After %q, want 429 rate_limited", method, path,
				answer.Status, answer.Body, answer.Header.Get("Retry-After"),
			)
		}
	}
	t.Run("invitations of an address", func(t *testing.T) {
		// 353 invitations to one address were accepted in six seconds.
		tenant := c.Tenant("Flood").For(t)
		for n := range 5 { // half of the limit of an address
			email := []string{
				"flood@quotas.example.com", "Flood@QUOTAS.example.com",
				"flood+1@quotas.example.com",
			}[n%3]
			tenant.Create("/invitations", map[string]string{"email": email})
		}
		limited(
			t, tenant.Client, http.MethodPost, "/invitations",
			map[string]string{"email": "flood@quotas.example.com"},
		)
		// Sub-addresses arrive in the same mailbox.
		limited(
			t, tenant.Client, http.MethodPost, "/invitations",
			map[string]string{"email": "flood+2@quotas.example.com"},
		)
		tenant.Create("/invitations", map[string]string{"email": "other@quotas.example.com"})
	})

	t.Run("sites", func(t *testing.T) {
		// One organization could create sites without limit.
		tenant, other := c.For(t).Tenant("Many sites"), c.For(t).OtherTenant("Few sites")
		for range 4 { // the tenant has one
			tenant.NewSite("Site")
		}
		limited(t, tenant.Client, http.MethodPost, "/sites", `{"name":"One too many"}`)
		other.NewSite("Site")
	})

	t.Run("calls to a hub that never answers", func(t *testing.T) {
		// One organization with such a hub used up all calls, and commands of other organizations
		// waited for 20 s.
		tenant := c.For(t).Tenant("Silent hub")
		silent := c.For(t).RawHub()
		most := int(commands.CallLimits.PerID)
		asked := make(chan struct{}, most)
		silent.OnRequest(func(harness.Request) harness.Response {
			asked <- struct{}{}
			return harness.Response{Silent: true}
		})
		silent.Enroll()
		silent.GoOnline()
		tenant.Add(silent.Serial)
		var under sync.WaitGroup
		for i := range most {
			under.Go(func() {
				method := http.MethodPost
				path := commandPath(silent.ID, 1)
				body := any(`{"key":"lock","value":false}`)
				if i%3 == 2 {
					method, path, body = http.MethodGet, "/hubs/"+silent.ID+"/devices", nil
				}
				if answer, err := tenant.Do(method, path, body); err != nil ||
					answer.Status != http.StatusGatewayTimeout {
					t.Errorf("%s: got %d %s, %v, want 504", path, answer.Status, answer.Body, err)
				}
			})
		}
		for range most {
			<-asked
		}
		limited(
			t, tenant.Client, http.MethodPost, commandPath(silent.ID, 1),
			`{"key":"lock","value":true}`, keyHeader, "k",
		)
		limited(t, tenant.Client, http.MethodGet, "/hubs/"+silent.ID+"/devices/1", nil)
		under.Wait()
	})
}
