package openapi_test

import (
	"net/http"
	"strings"
	"testing"

	"hubcloud/streams/streamstest"
	"hubcloud/test/openapi"
)

func document(t testing.TB) *openapi.Document {
	t.Helper()
	d, err := openapi.Read()
	streamstest.Must(t, err)
	return d
}

// TestExamples checks every example of the document against its schema.
func TestExamples(t *testing.T) {
	t.Parallel()
	examples := document(t).Examples
	if len(examples) < 50 {
		t.Errorf("got only %d examples", len(examples))
	}
	for _, example := range examples {
		if err := example.Check(); err != nil {
			t.Errorf("%s: %v", example.Pointer, err)
		}
	}
}

const (
	requestID = "01KDYGTVN3X2M5R7B9C1D4F6GH"
	site      = `{"id":"019b7d2e-4c1f-7a05-9d3e-5b8f0c6a1e47","name":"Mill","hub_count":0,"created_at":"2026-01-02T03:04:05.123456Z"}`
	hub       = "/v1/hubs/hub-7k2m-q4xd-93ta"
	event     = `{"cursor":"c1","type":"channel.observed","hub_id":"hub-7k2m-q4xd-93ta","device_id":3,"time":"2026-01-02T03:04:05.123456Z",` +
		`"clock_trusted":true,"data":{"key":"lock","endpoint":0,"value":true}}`
	channel = `{"key":"level","endpoint":0,"kind":"level","unit":"%","value":5,"observed_at":null,"desired":7,` +
		`"desired_at":"2026-01-02T03:04:05.123456Z","status":"pending","available":true}`
)

// answer is a possible answer of the service.
type answer struct {
	method, path string
	status       int
	header       http.Header
	body         string
}

// header returns the fields of every answer and more, given as names and values. An empty value
// removes a field.
func header(more ...string) http.Header {
	h := http.Header{}
	fields := append([]string{
		"Content-Type", "application/json", "X-Request-Id", requestID, "Ratelimit-Limit", "100",
		"Ratelimit-Remaining", "99",
		"Ratelimit-Reset", "1", "Ratelimit-Policy", "100;w=2",
	}, more...)
	for i := 0; i < len(fields); i += 2 {
		if h.Set(fields[i], fields[i+1]); fields[i+1] == "" {
			h.Del(fields[i])
		}
	}
	return h
}

func apiError(errorType string) string {
	return `{"error":{"type":"` + errorType + `","message":"m","request_id":"` + requestID + `"}}`
}

func stream(frames string) answer {
	return answer{"GET", hub + "/events/stream", 200,
		header(
			"Content-Type", "text/event-stream", "Cache-Control", "no-cache, no-transform",
			"X-Accel-Buffering", "no",
		), frames}
}

// TestRight checks that described answers pass.
func TestRight(t *testing.T) {
	t.Parallel()
	d := document(t)
	for what, a := range map[string]answer{
		"a list": {
			"GET", "/v1/sites", 200, header("Vary", "Accept-Encoding"), `{"data":[` + site + `],"has_more":false}`,
		},
		"an object": {"POST", "/v1/sites", 201, header(), site},
		"nothing": {
			"DELETE", hub + "/pairing", 204, header("Content-Type", ""), "",
		},
		"an API error": {"GET", hub, 404, header(), apiError("not_found")},
		"an accepted command": {
			"POST", hub + "/devices/3/commands", 202, header("Command-Id", "c1"),
			`{"hub_id":"hub-7k2m-q4xd-93ta","device_id":3,"channel":` + channel + `}`,
		},
		"events": {
			"GET", hub + "/events", 200, header("Events-Behind", "0", "Vary", "Accept-Encoding"),
			`{"data":[` + event + `],"next_cursor":"c1","has_more":false}`,
		},
		"an event of a new type": {
			"GET", hub + "/events", 200, header("Events-Behind", "0", "Vary", "Accept-Encoding"),
			`{"data":[` + strings.Replace(event, "channel.observed", "sun.rose", 1) + `],"next_cursor":"c1","has_more":false}`,
		},
		"a stream": stream(
			"id: c0\n\nid: c1\nevent: channel.observed\ndata: " + event +
				"\n\n: keepalive\n\nid: c1\n\n",
		),
		"a stream that was cut off": stream("id: c0\n\nid: c1\nevent: channel.obs"),
		"an unknown path":           {"GET", "/v1/rooms", 404, header(), apiError("not_found")},
		"an unsupported method": {
			"DELETE", "/v1/sites", 405, header("Allow", "GET, POST"), apiError("invalid_request"),
		},
		"health": {
			"GET", "/healthz", 200,
			http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {requestID}},
			`{"ok":true}`,
		},
		"a page for people": {
			"GET", "/v1/reference", 200, http.Header{}, "<!doctype html>",
		},
	} {
		if err := d.Check(a.method, a.path, a.status, a.header, []byte(a.body)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestWrong checks that every kind of undescribed answer is found, and that the error names the
// place.
func TestWrong(t *testing.T) {
	t.Parallel()
	d := document(t)
	page := func(e string) answer {
		return answer{
			"GET",
			hub + "/events",
			200,
			header(),
			`{"data":[` + e + `],"next_cursor":"c1","has_more":false}`,
		}
	}
	command := func(c string) answer {
		return answer{
			"POST",
			hub + "/devices/3/commands",
			202,
			header(),
			`{"hub_id":"hub-7k2m-q4xd-93ta","device_id":3,"channel":` + c + `}`,
		}
	}
	frame := "id: c1\nevent: channel.observed\ndata: " + event + "\n\n"
	for what, c := range map[string]struct {
		answer
		says string
	}{
		"a status": {
			answer{"GET", "/v1/sites", 404, header(), apiError("not_found")},
			"described are [200 400 401 403 429 500 503]",
		},
		"a field too many": {
			answer{
				"POST", "/v1/sites", 201, header(), strings.Replace(site, "{", `{"city":"x",`, 1),
			},
			"'city'",
		},
		"a field too few": {
			answer{
				"POST", "/v1/sites", 201, header(), strings.Replace(site, `"hub_count":0,`, "", 1),
			},
			"'hub_count'",
		},
		"a type": {
			answer{"POST", "/v1/sites", 201, header(), strings.Replace(site, `:0,`, `:"0",`, 1)},
			"/hub_count",
		},
		"a timestamp in milliseconds": {
			answer{"POST", "/v1/sites", 201, header(), strings.Replace(site, "123456Z", "123Z", 1)},
			"/created_at",
		},
		"another status's type": {
			answer{"GET", hub, 404, header(), apiError("hub_offline")}, "/error/type",
		},
		"another request's id": {
			answer{
				"GET", hub, 404, header(),
				strings.Replace(apiError("not_found"), requestID, "01", 1),
			},
			`names request "01"`,
		},
		"a header too few": {
			answer{"POST", "/v1/sites", 201, header("X-Request-Id", ""), site},
			"header X-Request-Id: is missing",
		},
		"a header that is no number": {
			answer{"POST", "/v1/sites", 201, header("Ratelimit-Reset", "soon"), site},
			"header Ratelimit-Reset",
		},
		"a header too many": {
			answer{"POST", "/v1/sites", 201, header("X-Powered-By", "x"), site},
			"header X-Powered-By: is not described",
		},
		"a 429 without Retry-After": {
			answer{"GET", "/v1/sites", 429, header(), apiError("rate_limited")},
			"header Retry-After: is missing",
		},
		"a media type": {
			answer{"POST", "/v1/sites", 201, header("Content-Type", "text/plain"), site},
			"header Content-Type",
		},
		"a body that is no JSON": {
			answer{"POST", "/v1/sites", 201, header(), "{"}, "body",
		},
		"a body of a 204": {
			answer{"DELETE", hub + "/pairing", 204, header(), "{}"}, "none is described",
		},
		"a status of an unknown path": {
			answer{"GET", "/v1/rooms", 200, header(), "{}"}, "is not described",
		},
		"a value of another key": {
			command(strings.Replace(channel, `"value":5`, `"value":true`, 1)), "/channel/value",
		},
		"an accepted command not pending": {
			command(strings.Replace(channel, "pending", "failed", 1)), "/channel/status",
		},
		"an event's data of another type": {
			page(strings.Replace(event, "channel.observed", "hub.disconnected", 1)), "/data/0",
		},
		"a stream's event": {
			stream(strings.Replace(frame, `"hub_id"`, `"hub"`, 1)), "'hub_id'",
		},
		"a stream's id": {
			stream(strings.Replace(frame, "id: c1", "id: c2", 1)), "go with another event",
		},
		"a stream's comment": {stream(": hello\n\n"), "keepalive"},
		"an event on two lines": {
			stream(strings.Replace(frame, `,"data"`, ",\ndata: \"data\"", 1)),
			"more than one line of data",
		},
	} {
		err := d.Check(c.method, c.path, c.status, c.header, []byte(c.body))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: want an error with %q, got %v", what, c.says, err)
		}
	}
}
