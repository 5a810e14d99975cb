package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"hubcloud/domain"
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
		_, err := a.verifyKey(http.Header{"Authorization": {value}}, day)
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
