package contract

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"hubcloud/test/harness"
)

// authentication tests "Authentication", except for scopes.
func authentication(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Authentication")

	t.Run("wrong keys", func(t *testing.T) {
		// "A missing, malformed, revoked or unknown key gets 401 unauthenticated." It takes
		// precedence over every other error, also 404 (design, section 6).
		last := "x"
		if strings.HasSuffix(tenant.Key, last) {
			last = "y"
		}
		environment := regexp.MustCompile(`_(dev|live)_`).FindStringSubmatch(tenant.Key)
		if environment == nil {
			t.Fatal("got a key without an environment")
		}
		other := map[string]string{"dev": "live", "live": "dev"}[environment[1]]
		wrong := map[string][]string{
			"missing":        {"Authorization", ""},
			"no scheme":      {"Authorization", tenant.Key},
			"another scheme": {"Authorization", "Basic " + tenant.Key},
			"no key":         {"Authorization", "Bearer "},
			"no shape":       {"Authorization", "Bearer hello"},
			"cut":            {"Authorization", "Bearer " + tenant.Key[:len(tenant.Key)-1]},
			"another last letter": {
				"Authorization",
				"Bearer " + tenant.Key[:len(tenant.Key)-1] + last,
			},
			"longer": {"Authorization", "Bearer " + tenant.Key + "x"},
			"other environment": {
				"Authorization",
				"Bearer " + strings.Replace(tenant.Key, environment[0], "_"+other+"_", 1),
			},
		}
		for what, header := range wrong {
			client := tenant.Client.For(t)
			for _, path := range []string{"/sites", "/hubs/" + noHub, "/nothing/at/all"} {
				apiError := client.Rejected(http.MethodGet, path, nil, "unauthenticated", header...)
				if strings.Contains(
					apiError.Message, tenant.Key[len(tenant.Key)-20:len(tenant.Key)-2],
				) {
					t.Errorf("%s: got a message with the key: %s", what, apiError.Message)
				}
			}
		}
	})

	t.Run("every endpoint requires a key", func(t *testing.T) {
		// "Every request carries an API key as a bearer token in the Authorization header."
		client := tenant.Client.For(t)
		for _, e := range endpoints {
			client.Rejected(e.method, e.at(noHub), e.sent(), "unauthenticated", "Authorization", "")
		}
	})

	t.Run("shape of a key", func(t *testing.T) {
		// "Key shape: <prefix>_<environment>_<key_id><secret> in three parts: a prefix, live
		// (production) or dev (development), …"
		shape := regexp.MustCompile(`^[a-z]+_(live|dev)_([A-Za-z0-9]{12})([A-Za-z0-9]{20,})$`).
			FindStringSubmatch(tenant.Key)
		if shape == nil {
			t.Fatal("got a key without three parts")
		}
		if s := c.For(t).OwnService(); s != nil && shape[2] != tenant.KeyID {
			t.Errorf("key id: got %q, want that of the key: %q", tenant.KeyID, shape[2])
		}
	})

	t.Run("only a hash of the key is stored", func(t *testing.T) {
		s := c.For(t).OwnService()
		if path := s.FindInFiles(tenant.Key[len(tenant.Key)-30:]); path != "" {
			t.Errorf("%s contains the key's secret", path)
		}
	})

	t.Run("a key belongs to the organization and reaches only its resources", func(t *testing.T) {
		// "A key belongs to the organization, not to the person who created it, and reaches only
		// that organization's resources."
		stranger := c.For(t).OtherTenant("Stranger to authentication")
		stranger.Rejected(http.MethodGet, "/sites/"+tenant.Site, nil, "not_found")
		stranger.Rejected(http.MethodPatch, "/sites/"+tenant.Site, `{"name":"Mine"}`, "not_found")
		for _, member := range data(
			t, tenant.For(t).Get("/members").Object(t),
		) {
			stranger.Rejected(http.MethodGet, "/members/"+member["id"].(string), nil, "not_found")
			stranger.Rejected(
				http.MethodDelete, "/members/"+member["id"].(string), nil, "not_found",
			)
		}
		_, key := c.For(t).OwnService().Key(tenant.Org)
		second := harness.NewClient(t, c.Base, key)
		second.Get("/sites/" + tenant.Site)
	})

	t.Run("a revoked key fails immediately", func(t *testing.T) {
		// "A revoked key fails immediately." Its open streams end too (design, section 6).
		s := c.For(t).OwnService()
		hub := c.For(t).Online(tenant)
		// Streams end within a second. A busy machine may be slower, so there are ten attempts.
		for attempt := 1; ; attempt++ {
			took := revoke(t, s, tenant.Org, hub.ID)
			if took <= time.Second {
				break
			}
			if attempt == 10 {
				t.Fatalf("streams of a revoked key: ended after %s, want at most 1 s", took)
			}
		}
		tenant.For(t).Get("/sites")
	})
}

// revoke creates a key, opens streams and a long poll with it and revokes it. It returns how long
// the last of them stayed open.
func revoke(t *testing.T, s *harness.Service, org, hub string) time.Duration {
	t.Helper()
	id, key := s.Key(org)
	client := harness.NewClient(t, s.Base(), key)
	first := client.Stream("/hubs/"+hub+"/events/stream", "")
	second := client.Stream("/hubs/"+hub+"/events/stream", "")
	polled := make(chan harness.Answer, 1)
	go func() {
		answer, err := client.Do(http.MethodGet, "/hubs/"+hub+"/events?wait=60", nil)
		if err != nil {
			t.Error(err)
		}
		polled <- answer
	}()
	<-first.Messages
	<-second.Messages
	s.CLI("key", "revoke", id)
	began := time.Now()
	client.Rejected(http.MethodGet, "/sites", nil, "unauthenticated")
	late := time.After(time.Minute)
	for _, ended := range []<-chan struct{}{first.Ended, second.Ended} {
		select {
		case <-ended:
		case <-late:
			t.Fatal("stream of a revoked key: still open, want it ended")
		}
	}
	select {
	case answer := <-polled:
		if answer.Status != http.StatusUnauthorized {
			t.Errorf("long poll of a revoked key: got %d %s", answer.Status, answer.Body)
		}
	case <-late:
		t.Fatal("long poll of a revoked key: no answer")
	}
	return time.Since(began)
}

// scopes tests the table "Scopes" and the column "Scope" of each table of endpoints.
func scopes(t *testing.T, c *harness.Target) {
	s := c.OwnService()
	tenant := c.Tenant("Scopes")
	hub := c.Online(tenant)
	all := []string{
		"sites:read", "sites:write", "hubs:read", "hubs:write", "hubs:command", "events:read",
		"members:read", "members:write",
	}
	for _, scope := range all {
		t.Run(scope, func(t *testing.T) {
			// "A request outside the key's scopes gets 403 insufficient_scope, and the message
			// names the needed scope."
			others := []string{}
			for _, other := range all {
				if other != scope {
					others = append(others, other)
				}
			}
			_, withoutKey := s.For(t).Key(tenant.Org, others...)
			_, onlyKey := s.For(t).Key(tenant.Org, scope)
			without := harness.NewClient(t, c.Base, withoutKey)
			only := harness.NewClient(t, c.Base, onlyKey)
			for _, e := range endpoints {
				if e.scope != scope {
					apiError := only.Rejected(
						e.method, e.at(hub.ID), e.sent(), "insufficient_scope",
					)
					if !strings.Contains(apiError.Message, e.scope) {
						t.Errorf(
							"%s: want the scope %s in the message, got %s", e, e.scope,
							apiError.Message,
						)
					}
					continue
				}
				// 403 takes precedence over 404 and 400 (design, section 6).
				without.Rejected(e.method, e.at(hub.ID), e.sent(), "insufficient_scope")
				without.Rejected(e.method, e.at(noHub), `{"what":`, "insufficient_scope")
				// The scope alone is enough: unknown ids are not found, other requests succeed.
				answer, err := only.Try(e.method, e.at(noHub), e.sent())
				harness.Must(t, err)
				if answer.Status == http.StatusForbidden ||
					answer.Status == http.StatusUnauthorized ||
					answer.Status >= 500 {
					t.Errorf("%s with %s alone: got %d %s", e, scope, answer.Status, answer.Body)
				}
			}
		})
	}
}
