package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"hubcloud/domain"
	"hubcloud/httpapi/apierror"
)

// Every accepted body is one JSON object in UTF-8 that encoding/json decodes alike, and fields have
// the values that were sent.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		`{"name":"x"}`, `{"name":null,"site_id":"y"}`, ` { "name" : "\u00e4" , "n":[{}] } `,
		`{"name":"\ud83d\ude00"}`, `{"name":"\ud800"}`,
		`{}`, `[]`, `{"a":1,"a":2}`, `{"a":1}{}`, "{\"\xff\":1}", `{"a":`, "\ufeff{}", `"{"`,
		`{"name":1e999}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		o, err := decodeObject(body)
		if err != nil {
			if domain.CodeOf(err) != domain.CodeInvalidRequest {
				t.Fatalf("got %v, want invalid_request", err)
			}
			return
		}
		body = bytes.TrimPrefix(body, []byte("\ufeff"))
		var plain map[string]json.RawMessage
		if err := json.Unmarshal(body, &plain); err != nil || len(plain) != len(o) ||
			!utf8.Valid(body) {
			t.Fatalf("accepted %q, want what encoding/json accepts: %v", body, err)
		}
		for name := range o {
			if err := o.allow(nil); err == nil {
				t.Fatal("unknown field: got nil, want an error")
			}
			var want any
			if err := json.Unmarshal(o[name], &want); err != nil &&
				!strings.Contains(err.Error(), "cannot unmarshal number") {
				t.Fatalf("field %q is %q: got %v, want it decoded", name, o[name], err)
			}
			got, err := o.stringField(name)
			if err == nil && got != want {
				t.Fatalf("field %q is %q: got text %q, want %v", name, o[name], got, want)
			}
			nullable, nullableErr := o.nullableString(name)
			if n, err := o.count(name); err == nil {
				if number, ok := want.(float64); !ok || number != float64(n) || n < 0 {
					t.Fatalf("field %q is %q: got number %d, want %v", name, o[name], n, want)
				}
			}
			if (want == nil && err == nil) ||
				(err == nil && (nullable == nil || *nullable != got)) ||
				(nullableErr != nil && err == nil) {
				t.Fatalf("field %q is %q: got %v, want %v", name, o[name], nullable, want)
			}
		}
	})
}

// Whatever body and idempotency key a route gets, the answer is not internal_error, errors have the
// contract's form, and commands that reach a hub are valid.
func FuzzRequests(f *testing.F) {
	w := accepting{newWorld()}
	bearer, _ := w.addKey(orgOne, 1, domain.AllScopes()...)
	handler := newAPI(f, Config{
		Keys: w, Hubs: hubAccess(w), ReadModels: w, Directory: w, Devices: live(w),
		Commands: live(w), Idempotency: w, Events: w, OrgEvents: worldFeed(w), FeedReaders: w, Enrolment: w,
		Environment: domain.EnvironmentDev, Rate: 1e9, Burst: 1e9,
	})
	var routes []*route
	for _, rt := range (&api{}).routes() {
		if rt.readsBody {
			routes = append(routes, rt)
		}
	}
	ids := strings.NewReplacer(
		"{site_id}", siteOne, "{hub_id}", string(hubOne), "{device_id}", "1",
		"{member_id}", memberAdmin,
	)
	for _, seed := range []string{
		`{"name":"x"}`, `{"name":null,"room":"y"}`, `{"setup_code":"12345"}`,
		`{"key":"lock","value":true,"endpoint":0}`, `{"role":"member"}`,
		`{"key":"color","value":{"red":0,"green":1,"blue":255,"warm_white":1.0}}`,
		`{"key":"mode","value":"heat"}`, `{"key":"level","value":9e1}`,
		`{"email":"a@example.org","role":"admin"}`,
		`{"serial":"HUB-7K2M-Q4XD-93TA","site_id":"` + siteOne + `"}`,
		`{"key":"pressure","value":0,"endpoint":2}`, ``, `[`,
	} {
		for i := range routes {
			f.Add(uint8(i), "key", []byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, key string, body []byte) {
		rt := routes[int(which)%len(routes)]
		req := httptest.NewRequest(rt.method, ids.Replace(rt.pattern), bytes.NewReader(body))
		req.Header = http.Header{
			"Authorization":   {bearer},
			"Content-Type":    {"application/json"},
			"Idempotency-Key": {key},
		}
		w.hub.sent = nil
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, req)
		a := answer{recorder.Result(), recorder.Body.String()}
		a.Request = req
		if a.StatusCode >= 500 {
			t.Fatalf(
				"%s %s %s: got %d %s, want no fault", rt.method, rt.pattern, body, a.StatusCode,
				a.body,
			)
		}
		if a.StatusCode >= 400 {
			if msg := wantError(t, a, a.StatusCode, typeOf(a)); !utf8.ValidString(msg) ||
				len(msg) > 400 {
				t.Fatalf("got message %q, want valid UTF-8 of at most 400 bytes", msg)
			}
		}
		for _, c := range w.hub.sent {
			_, known := map[string]bool{
				"lock": true, "barrier": true, "switch": true, "level": true, "position": true,
				"color": true, "mode": true, "heating_setpoint": true,
				"cooling_setpoint": true, "fan_mode": true, "local_protection": true,
			}[c.Key]
			if a.StatusCode != http.StatusAccepted || !known || c.Endpoint < 0 ||
				!json.Valid(c.Value) ||
				c.IdempotencyKey != key {
				t.Fatalf("got %d, the hub got %+v, want 202 and a valid command", a.StatusCode, c)
			}
		}
	})
}

// accepting accepts every change, much faster than the real directory: a fuzz test tries thousands
// of bodies a second.
type accepting struct{ *world }

func (accepting) Site(context.Context, string, string) (s domain.Site, err error) { return }

func (accepting) Hub(context.Context, string, domain.HubID) (h domain.Hub, err error) { return }

func (accepting) RenameSite(
	context.Context, domain.Origin, string, string, string,
) (s domain.SiteState, err error) {
	return
}

func (accepting) AddHub(
	context.Context, domain.Origin, domain.AddHub,
) (h domain.HubState, err error) {
	return
}

func (accepting) UpdateHub(
	context.Context, domain.Origin, domain.UpdateHub,
) (h domain.HubState, err error) {
	return
}

func (accepting) LabelDevice(
	context.Context, domain.Origin, domain.LabelDevice,
) (l domain.DeviceLabel, err error) {
	return
}

func (accepting) Invite(
	context.Context, domain.Origin, string, string, domain.Role,
) (i domain.Invitation, err error) {
	return
}

func (accepting) ChangeRole(
	context.Context, domain.Origin, string, string, domain.Role,
) (m domain.Member, err error) {
	return
}

func (accepting) Once(
	ctx context.Context, _, _ string, _ []byte,
	do func(ctx context.Context, id string) ([]byte, error),
) ([]byte, error) {
	return do(ctx, siteOne)
}

// typeOf returns the type of an error whose status has several.
func typeOf(a answer) domain.Code {
	for code, status := range apierror.Statuses() {
		if status == a.StatusCode && strings.Contains(a.body, `"type":"`+string(code)+`"`) {
			return code
		}
	}
	return domain.CodeInvalidRequest
}

// Answers that net/http writes by itself are recognized, and nothing else is.
func FuzzParseServerError(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: " +
			"close\r\n\r\n400 Bad Request",
		"HTTP/1.1 400 Bad Request: malformed Host header\r\nContent-Type: text/plain; " +
			"charset=utf-8\r\nConnection: close\r\n\r\nx",
		"HTTP/1.0 417 Expectation Failed\r\n",
		"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\n", "HTTP/1.1 4",
		"HTTP/1.1 40\r\n", "HTTP/1.", "7\r\nHTTP/1.1",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		status, reason, ok := parseServerError(p)
		if !ok {
			return
		}
		if status < 400 || status > 599 || !strings.HasPrefix(string(p), "HTTP/1.") ||
			!strings.Contains(string(p), strconv.Itoa(status)) ||
			!strings.Contains(string(p), reason) {
			t.Fatalf("got %q for status %d, reason %q, want both in it", p, status, reason)
		}
	})
}

// Only the key itself authenticates.
func FuzzAuthorization(f *testing.F) {
	w := newWorld()
	bearer, _ := w.addKey(orgOne, 1, domain.AllScopes()...)
	a := &api{Config: Config{Keys: w, Environment: domain.EnvironmentDev}}
	for _, seed := range []string{
		bearer, bearer + " ", "bearer  " + bearer[7:], "Bearer", "", "Bearer hc_dev_",
		bearer[:len(bearer)-1],
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		_, err := a.verifyKey(http.Header{"Authorization": {value}})
		token := strings.TrimLeft(value[min(6, len(value)):], " ")
		genuine := len(value) > 7 && strings.EqualFold(value[:7], "Bearer ") && token == bearer[7:]
		if (err == nil) != genuine {
			t.Fatalf("%q: got %v, want valid: %t", value, err, genuine)
		}
		if err != nil && strings.Contains(err.Error(), value) && len(value) > 40 {
			t.Fatalf("got %v, want an error that does not repeat the key", err)
		}
	})
}

// Query parameters are decoded as by net/url, except for those that are rejected.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{
		"limit=1", "a%66ter=x&limit=2", "limit=1&limit=2", "limit=%zz", "limit=", "&&=&limit",
		"x=%&limit=5", "limit=1;after=2", "LIMIT=1&li%ffmit=2", "after=%00", "after=%ff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		known := []string{"limit", "after"}
		q, err := readQuery(raw, known)
		if text := checkNames(raw, known); text != nil && !utf8.ValidString(text.Error()) {
			t.Fatalf("%q: got error %q, want UTF-8", raw, text)
		}
		reference, referenceErr := url.ParseQuery(raw)
		if err != nil || referenceErr != nil {
			return
		}
		for _, name := range []string{"limit", "after"} {
			got, given := q.get(name)
			if given != reference.Has(name) || got != reference.Get(name) {
				t.Fatalf("%q: got %s %q, want %v as net/url", raw, name, got, reference[name])
			}
		}
		if n, err := q.integer("limit", 1, 50, 50); err == nil && (n < 1 || n > 50) {
			t.Fatalf("%q: got limit %d, want 1 to 50", raw, n)
		}
	})
}
