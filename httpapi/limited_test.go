package httpapi

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/projectionstest"
	"hubcloud/streams/installationtest"
	"hubcloud/streams/streamstest"
)

// ofNothing replaces the ids of startReal's organization by ids of nothing.
var ofNothing = strings.NewReplacer(
	siteOne, "01940000-0000-7000-8000-0000000000f1", string(hubOne), "hub-none-none-none",
	strings.ToUpper(string(hubOne)), "HUB-NONE-NONE-NONE",
	webhookOne, "01940000-0000-7000-8000-0000000000f2",
)

// limitedKey creates a site without hubs, and an API key that is limited to it.
func limitedKey(t *testing.T, s *service) (site, bearer string) {
	t.Helper()
	b := projectionstest.Shared()
	whole, err := domain.ParseKey(strings.TrimPrefix(s.bearer, "Bearer "))
	streamstest.Must(t, err)
	access, _ := b.Access.Key(whole.ID)
	org, o := access.Reach.OrgID, installationtest.Operator
	created, err := b.Directory.CreateSite(t.Context(), o, org, "Annex")
	streamstest.Must(t, err)
	scopes := slices.DeleteFunc(
		domain.AllScopes(), func(scope domain.Scope) bool { return !scope.OfSites() },
	)
	_, key, err := b.Directory.CreateKey(
		t.Context(), o, org, "", scopes, domain.KeyLimits{Sites: []string{created.ID}},
	)
	streamstest.Must(t, err)
	return created.ID, "Bearer " + key
}

// To a key that is limited to sites, what is elsewhere is what does not exist: each operation of the
// document answers about both alike, and no list has it.
func TestLimitedKey(t *testing.T) {
	t.Parallel()
	s := startReal(t, nil)
	site, bearer := limitedKey(t, s)
	s.bearer = bearer
	s.seen = []domain.FeedReader{
		{FeedReaderID: domain.FeedReaderID{Name: "whole"}},
		{FeedReaderID: domain.FeedReaderID{Name: "hub", Hub: domain.HubID(s.ids.Replace(string(hubOne)))}},
	}
	s.drain() // streams end at once
	alike := func(method, path, body string) string {
		t.Helper()
		outside := s.do(method, path, body)
		none := s.do(method, ofNothing.Replace(path), ofNothing.Replace(body))
		got, want := alikeText(ofNothing.Replace(s.constants.Replace(outside.body))), alikeText(none.body)
		if outside.StatusCode != none.StatusCode || got != want {
			t.Errorf(
				"%s %s %s: got %d %s, want as for nothing %d %s", method, path, body,
				outside.StatusCode, got, none.StatusCode, want,
			)
		}
		if outside.StatusCode >= 400 {
			return "" // the message may name what the request names
		}
		return outside.body
	}
	queries := []string{
		"site_id=" + siteOne, "hub_id=" + string(hubOne), "starting_after=" + siteOne,
		"starting_after=" + string(hubOne), "starting_after=" + webhookOne,
		"starting_after=" + string(hubOne) + "/1/0/lock", "snapshot=true",
	}
	for _, op := range described(t).operations {
		if !strings.HasPrefix(op.pattern, "/v1/") || !slices.Contains(op.statuses(), 401) {
			continue // it needs no key
		}
		path := strings.ReplaceAll(there.Replace(op.pattern), "{command_id}", string(hubOne)+".01")
		body := alike(op.method, path, requestBodies[op.body])
		for _, query := range queries {
			if op.method == "GET" {
				body += alike(op.method, path+"?"+query, "")
			}
		}
		outside := []string{s.ids.Replace(webhookOne)}
		if op.body == "" { // other answers repeat what the request names
			outside = append(outside, s.ids.Replace(siteOne), s.ids.Replace(string(hubOne)))
		}
		for _, id := range outside {
			if strings.Contains(body, id) {
				t.Errorf("%v: got %s, want nothing of outside", op, body)
			}
		}
	}
	serial := strings.ToUpper(string(hubOne))
	alike("POST", "/v1/hubs", `{"serial":"`+serial+`","site_id":"`+site+`"}`)
	wantError(t, s.do("POST", "/v1/sites", `{"name":"Third"}`), 403, domain.CodeForbidden)
	wantError(t, s.do("GET", "/v1/members", ""), 403, domain.CodeInsufficientScope)

	// A webhook of the key gets nothing but the key's sites.
	webhook := s.do("POST", "/v1/webhooks", `{"url":"http://127.0.0.1:1/","filter":{"type":["a"]}}`)
	if webhook.StatusCode != http.StatusCreated || !strings.Contains(webhook.body, site) {
		t.Errorf("webhook: got %d %s, want one with the site", webhook.StatusCode, webhook.body)
	}
	if all := s.do("GET", "/v1/webhooks", ""); strings.Count(all.body, `"name"`) != 1 {
		t.Errorf("webhooks: got %s, want the key's own", all.body)
	}
	if all := s.do("GET", "/v1/sites", ""); strings.Count(all.body, `"name"`) != 1 {
		t.Errorf("sites: got %s, want the key's", all.body)
	}
}

// alikeText leaves out of an answer what is different each time.
func alikeText(body string) string {
	return regexp.MustCompile(`"(request_id|time|id|created_at|secret)":"[^"]*"`).
		ReplaceAllString(body, "")
}

// An idempotency key of a limited key is another one than that of other keys: its holder does not
// learn what others have sent.
func TestLimitedKeyHasItsOwnIdempotencyKeys(t *testing.T) {
	t.Parallel()
	s := startReal(t, nil)
	site, bearer := limitedKey(t, s)
	hook := `{"url":"http://127.0.0.1:1/","filter":{"site_id":["` + site + `"]}}`
	first := s.do("POST", "/v1/webhooks", hook, "Idempotency-Key", "one")
	s.bearer = bearer
	for _, replayed := range []string{"", "true"} {
		a := s.do("POST", "/v1/webhooks", hook, "Idempotency-Key", "one")
		if a.StatusCode != 201 || a.Header.Get("Idempotent-Replayed") != replayed ||
			a.body == first.body {
			t.Errorf("got %d %s, want another webhook, replayed %q", a.StatusCode, a.body, replayed)
		}
	}
}

// A key ends when it expires, and a former secret when the overlap does; who has the secret is told
// so. What was opened with it ends as well.
func TestKeyEnds(t *testing.T) {
	t.Parallel()
	now := day
	s := start(t, func(c *Config) { c.Now = func() time.Time { return now } })
	key, err := domain.ParseKey(strings.TrimPrefix(s.bearer, "Bearer "))
	streamstest.Must(t, err)
	former, hash := key.WithID(key.ID), key.SecretHash()
	next := domain.NewKey(key.Environment, [domain.KeyEntropy]byte{47: 7}).WithID(key.ID)
	for name, tt := range map[string]struct {
		expires, until time.Duration
		presented      domain.Key
		message        string
	}{
		"before its expiry":            {expires: time.Second, presented: next},
		"at its expiry":                {presented: next, message: "expired at"},
		"wrong after its expiry":       {presented: domain.NewKey(key.Environment, [48]byte{}), message: "unknown"},
		"former in the overlap":        {expires: time.Hour, until: time.Second, presented: former},
		"former after the overlap":     {expires: time.Hour, presented: former, message: "was rotated"},
		"former of a key that expired": {until: time.Hour, presented: former, message: "expired at"},
	} {
		access := s.keys[key.ID]
		access.SecretHash, access.ExpiresAt = next.SecretHash(), day.Add(tt.expires)
		access.Former = []domain.KeySecret{{Hash: hash[:], Until: day.Add(tt.until)}}
		s.mu.Lock()
		s.keys[key.ID] = access
		s.mu.Unlock()
		s.bearer = "Bearer " + tt.presented.Reveal()
		a := s.do("GET", "/v1/hubs/"+string(hubOne)+"/events", "")
		if tt.message == "" {
			if a.StatusCode != 200 {
				t.Errorf("%s: got %d %s, want 200", name, a.StatusCode, a.body)
			}
		} else if got := wantError(t, a, 401, domain.CodeUnauthenticated); !strings.Contains(got, tt.message) {
			t.Errorf("%s: got %q, want %q in it", name, got, tt.message)
		}
	}
}
