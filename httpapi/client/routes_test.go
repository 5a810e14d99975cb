package client

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"
	"testing"
	"time"
)

const (
	hubJSON = `{"id":"hub-1","name":"Lobby","site_id":"s1",` +
		`"connection":{"status":"offline","since":"2026-01-02T03:04:05.000006Z",` +
		`"public_ip":"192.0.2.1",` +
		`"disconnect_reason":"read error"},"firmware":{"version":"2.4.1"},` +
		`"network":{"type":"wifi","interface":"wlan0","ip_address":"10.0.4.7",` +
		`"ipv6_address":null,` +
		`"mac_address":null,"ssid":"attic","signal_dbm":-60,"carrier":null,"radio":null,` +
		`"metered":false,"reported_at":"2026-01-02T03:04:05.000006Z"},` +
		`"registered_at":"2026-01-02T03:04:05.000006Z"}`
	listedDeviceJSON = `{"id":3,"name":"Dial","room":null,"manufacturer":"Acme","model":"T3",` +
		`"channels":[{"key":"heating_setpoint","endpoint":0,` +
		`"kind":"heating_setpoint","unit":"°C","available":true,"readable":true,"writable":true,` +
		`"capabilities":{"max":30,"min":5}}]}`
	sentJSON = `{"hub_id":"hub-1","device_id":3,"channel":{"key":"lock","endpoint":0,` +
		`"kind":"lock","unit":null,"available":true,"value":false,` +
		`"observed_at":"2026-01-02T03:04:05.000006Z","desired":true,` +
		`"desired_at":"2026-01-02T03:04:06.000006Z","status":"pending"}}`
	stateJSON = `{"id":"hub-1/3/2/color","hub_id":"hub-1","site_id":"s1","connection":{"status":` +
		`"offline","since":"2026-01-02T03:04:05.000006Z"},"device":{"id":3,"name":"Dial",` +
		`"manufacturer":"Acme","model":"T3","room":"Hall","available_since":null},` +
		`"channel":{"key":"color","endpoint":2,"kind":"color","unit":null,"available":false,` +
		`"readable":true,"writable":true,"capabilities":{},"value":{"red":1,"green":2,"blue":3},` +
		`"observed_at":"2026-01-02T03:04:05.000006Z","desired":null,"desired_at":null,` +
		`"status":"synchronized"},"changed_at":"2026-01-02T03:04:05.000006Z","basis":"event",` +
		`"certain":true}`
)

// one returns the only item of a sequence.
func one[T any](sequence iter.Seq2[T, error]) (T, error) {
	var last T
	for item, err := range sequence {
		if err != nil {
			return last, err
		}
		last = item
	}
	return last, nil
}

// done returns the error of a call.
func done[T any](_ T, err error) error { return err }

// Routes are called with the contract's method, path, query and body, also where some of it is left
// out. The black-box tests call the other routes, and package httpapi compares the types of answers
// with their description.
func TestRoutes(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	for _, tt := range []struct {
		do            func(c *Client) error
		request, body string
	}{
		{
			func(c *Client) error {
				return done(c.SitesPage(ctx, PageQuery{Limit: 7, StartingAfter: "s0"}))
			},
			"GET /v1/sites?limit=7&starting_after=s0", "",
		},
		{
			func(c *Client) error {
				return done(one(c.States(ctx, StateFilter{
					SiteID: "s1", HubID: "hub-1", Key: "lock", Value: new(true),
					Status: StatusPending, Available: new(false), ObservedBefore: at,
				})))
			},
			"GET /v1/state?available=false&hub_id=hub-1&key=lock&limit=500&" +
				"observed_before=2026-01-02T03%3A04%3A05.000006Z&site_id=s1&status=pending&value=true",
			"",
		},
		{
			func(c *Client) error { return done(c.StateAt(ctx, "hub-1", at)) },
			"GET /v1/hubs/hub-1/state?at=2026-01-02T03%3A04%3A05.000006Z", "",
		},
		{
			func(c *Client) error {
				return done(c.Attention(ctx, AttentionFilter{HubID: "hub-1", Limit: 1}))
			},
			"GET /v1/attention?hub_id=hub-1&limit=1", "",
		},
		{
			func(c *Client) error {
				return done(c.UpdateHub(ctx, "hub-1", HubUpdate{Name: Clear(), SiteID: "s2"}))
			},
			"PATCH /v1/hubs/hub-1", `{"name":null,"site_id":"s2"}`,
		},
		{
			func(c *Client) error {
				return done(c.UpdateDevice(
					ctx, "hub-1", 3, DeviceUpdate{Name: SetTo(""), Room: Clear()},
				))
			},
			"PATCH /v1/hubs/hub-1/devices/3", `{"name":"","room":null}`,
		},
		{
			func(c *Client) error {
				return done(c.Send(ctx, Command{
					HubID: "hub-1", DeviceID: 3, Key: "color", Endpoint: 2, Value: Color{Red: 1},
				}))
			},
			"POST /v1/hubs/hub-1/devices/3/commands",
			`{"key":"color","value":{"red":1,"green":0,"blue":0},"endpoint":2}`,
		},
		{
			func(c *Client) error {
				return done(c.EventsPage(ctx, "hub-1", EventQuery{
					After: "c0", Limit: 5, Wait: 20 * time.Second,
				}))
			},
			"GET /v1/hubs/hub-1/events?after=c0&limit=5&wait=20", "",
		},
		{
			func(c *Client) error {
				return done(c.AuditPage(ctx, AuditFilter{
					Types: []string{"key.*", "site.created"}, HubIDs: []string{"hub-1"},
					ActorID: "k1", SubjectID: "s1", Until: time.Unix(0, 0),
				}, EventQuery{Last: 5}))
			},
			"GET /v1/audit?actor_id=k1&hub_id=hub-1&last=5&subject_id=s1&type=key.%2A&" +
				"type=site.created&until=1970-01-01T00%3A00%3A00Z", "",
		},
		{
			func(c *Client) error {
				return done(one(c.Audit(ctx, AuditFilter{}, "", UntilNewest())))
			},
			"GET /v1/audit?limit=500", "",
		},
		{
			func(c *Client) error {
				var file strings.Builder
				err := c.AuditCSV(ctx, AuditFilter{ActorID: "k1"}, EventQuery{After: "a0"}, &file)
				if file.Len() == 0 {
					return errors.New("the file is empty")
				}
				return err
			},
			"GET /v1/audit.csv?actor_id=k1&after=a0", "",
		},
		{
			func(c *Client) error {
				return done(c.CreateWebhook(ctx, "Mine", "https://a.test/", WebhookFilter{
					Types: []EventType{"hub.*"},
				}))
			},
			"POST /v1/webhooks", `{"name":"Mine","url":"https://a.test/",` +
				`"filter":{"site_id":[],"hub_id":[],"type":["hub.*"]}}`,
		},
		{
			func(c *Client) error {
				return done(c.UpdateWebhook(ctx, "w1", WebhookUpdate{Enabled: new(false)}))
			},
			"PATCH /v1/webhooks/w1", `{"enabled":false}`,
		},
		{
			func(c *Client) error { return done(c.RotateWebhookSecret(ctx, "w1", time.Hour)) },
			"POST /v1/webhooks/w1/rotate-secret", `{"overlap_seconds":3600}`,
		},
		{
			func(c *Client) error { return done(c.WebhookDeliveries(ctx, "w1")) },
			"GET /v1/webhooks/w1/deliveries", "",
		},
		{
			func(c *Client) error { return done(c.TestWebhook(ctx, "w1")) },
			"POST /v1/webhooks/w1/test", "",
		},
		{
			func(c *Client) error {
				return done(c.CreateCredential(ctx, "h", 3, CredentialRequest{Label: "Cleaner"}))
			},
			"POST /v1/hubs/h/devices/3/credentials", `{"label":"Cleaner"}`,
		},
		{
			func(c *Client) error {
				return done(c.UpdateCredential(ctx, "h", 3, 4, CredentialRequest{Code: "402917"}))
			},
			"PATCH /v1/hubs/h/devices/3/credentials/4", `{"code":"402917"}`,
		},
		{
			func(c *Client) error {
				return done(c.CreateCredentials(
					ctx, []CredentialTarget{{HubID: "h", DeviceID: 3}}, CredentialRequest{Label: "Cleaner"},
				))
			},
			"POST /v1/credentials", `{"label":"Cleaner","channels":[{"hub_id":"h","device_id":3}]}`,
		},
		{
			func(c *Client) error { return done(c.Hub(ctx, "a/b?c#d%")) },
			"GET /v1/hubs/a%2Fb%3Fc%23d%25", "",
		},
	} {
		c, s := playing(t, nil, answer(
			200, `{"data":[{"cursor":"c","type":"t"}],"next_cursor":"c","has_more":false}`,
		))
		if err := tt.do(c); err != nil {
			t.Errorf("%s: got %v, want nil", tt.request, err)
			continue
		}
		r := s.seen()[0]
		request := strings.TrimSuffix(r.method+" "+r.path+"?"+r.query, "?")
		if request != tt.request || r.body != tt.body {
			t.Errorf("%s: sent %s with body %s, want body %s", tt.request, request, r.body, tt.body)
		}
		if r.header.Get("Authorization") != "Bearer hc_dev_key" ||
			r.header.Get("User-Agent") != "hubcloud-client" ||
			(r.header.Get("Content-Type") == "application/json") != (tt.body != "") {
			t.Errorf(
				"%s: got header %v, want the key, the User-Agent and a Content-Type for a body",
				tt.request, r.header,
			)
		}
	}
}

// An id cannot change the path of a call.
func TestIDsThatMakeOtherPaths(t *testing.T) {
	t.Parallel()
	c, s := playing(t, nil, answer(http.StatusOK, `{}`))
	for _, id := range []string{"", ".", ".."} {
		_, hubErr := c.Hub(t.Context(), id)
		_, eventsErr := one(c.Events(t.Context(), id, ""))
		_, positionErr := c.Position(t.Context(), id)
		for _, err := range []error{
			hubErr, eventsErr, positionErr, c.RemoveMember(t.Context(), id),
		} {
			if !errors.Is(err, ErrInvalidRequest) {
				t.Errorf("id %q: got %v, want ErrInvalidRequest", id, err)
			}
		}
	}
	if len(s.seen()) != 0 {
		t.Errorf("got requests %v, want none", s.seen())
	}
}

// Lists are read page by page, only as far as wanted, and never endlessly.
func TestLists(t *testing.T) {
	t.Parallel()
	pageOf := func(more string, ids ...string) step {
		return answer(
			http.StatusOK,
			`{"data":[{"id":"`+strings.Join(ids, `"},{"id":"`)+`"}],"has_more":`+more+`}`,
		)
	}
	read := func(c *Client, most int) (ids []string, err error) {
		for site, err := range c.Sites(t.Context()) {
			if err != nil {
				return ids, err
			}
			if ids = append(ids, site.ID); len(ids) == most {
				break
			}
		}
		return ids, nil
	}
	c, s := playing(t, nil, pageOf("true", "a", "b"), pageOf("true", "c"), pageOf("false", "d"))
	if ids, err := read(c, 100); err != nil || strings.Join(ids, "") != "abcd" ||
		s.seen()[2].query != "starting_after=c" {
		t.Errorf(
			"got %v, %v, requests %+v, want a b c d, nil, the third after c", ids, err, s.seen(),
		)
	}
	c, s = playing(t, nil, pageOf("true", "a", "b"), pageOf("true", "c"))
	if ids, err := read(c, 2); err != nil || len(ids) != 2 || len(s.seen()) != 1 {
		t.Errorf("got %v, %v after %d requests, want 2 ids, nil, 1", ids, err, len(s.seen()))
	}
	c, _ = playing(
		t, nil, pageOf("true", "a"), apiError(http.StatusForbidden, ErrInsufficientScope),
	)
	if ids, err := read(c, 100); !errors.Is(err, ErrInsufficientScope) || len(ids) != 1 {
		t.Errorf("got %v, %v, want 1 id, ErrInsufficientScope", ids, err)
	}
	for name, endless := range map[string]step{
		"the same page": pageOf("true", "a"),
		"no items":      answer(http.StatusOK, `{"data":[],"has_more":true}`),
	} {
		c, s = playing(t, nil, endless)
		if _, err := read(c, 100); !errors.Is(err, ErrProtocol) || len(s.seen()) > 2 {
			t.Errorf(
				"%s forever: got %v after %d requests, want ErrProtocol after at most 2", name, err,
				len(s.seen()),
			)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for field, cfg := range map[string]Config{
		"BaseURL":        {APIKey: "k"},
		"http":           {BaseURL: "ftp://api.test/v1", APIKey: "k"},
		"version":        {BaseURL: "https://api.test/v1?x=y", APIKey: "k"},
		"APIKey":         {BaseURL: "https://api.test/v1"},
		"without spaces": {BaseURL: "https://api.test/v1", APIKey: "k\n"},
		"HTTPClient": {
			BaseURL: "https://api.test/v1", APIKey: "k",
			HTTPClient: &http.Client{Timeout: time.Second},
		},
	} {
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: got %v, want an error that names the field", field, err)
		}
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		is, asked string
		meets     bool
	}{
		{"true", "true", true}, {"false", "true", false}, {"20", "20.0", true},
		{"20.5", "20", false}, {`"heat"`, `"heat"`, true}, {`"heat"`, "true", false},
		{`{"red":1,"green":2,"blue":3,"warm_white":9}`, `{"blue":3,"green":2,"red":1}`, true},
		{`{"red":1}`, `{"red":1,"green":2}`, false},
		{`{"red":1}`, `{"red":2}`, false}, {"null", "true", false}, {"1", `{"red":1}`, false},
	} {
		if got := Value(tt.is).meets(Value(tt.asked)); got != tt.meets {
			t.Errorf("%s meets %s: got %v, want %v", tt.is, tt.asked, got, tt.meets)
		}
	}
}
