package contract

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"hubcloud/test/harness"
)

// errorBodies tests "Errors". The suite checks the body of every API error; the rows of the table
// are tested where they belong.
func errorBodies(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Errors")

	t.Run("request ids", func(t *testing.T) {
		// "request_id is quoted to support": every answer has a unique one.
		client := tenant.For(t)
		seen := map[string]bool{}
		for _, path := range []string{
			"/sites", "/sites", "/sites?limit=0", "/nothing", "/hubs/" + noHub,
		} {
			answer, err := client.Try(http.MethodGet, path, nil)
			harness.Must(t, err)
			id := answer.Header.Get("X-Request-Id")
			if !regexp.MustCompile(`^[0-9A-HJKMNP-TV-Z]{26}$`).MatchString(id) || seen[id] {
				t.Errorf("%s: got request id %q, want a new ULID", path, id)
			}
			seen[id] = true
			if answer.Status >= 400 {
				harness.CheckAPIError(t, answer)
			}
			if got := answer.Header.Get("Content-Type"); !strings.HasPrefix(
				got, "application/json",
			) {
				t.Errorf("%s: got Content-Type %q, want JSON", path, got)
			}
		}
		// The service does not accept a client's request id.
		if answer := client.Get(
			"/sites", "X-Request-Id", "mine",
		); answer.Header.Get("X-Request-Id") == "mine" {
			t.Error("got the client's X-Request-Id, want a new one")
		}
	})

	t.Run("unknown paths and methods", func(t *testing.T) {
		// The design, section 6: "Unknown path: 404 not_found; known path with another method: 405
		// with Allow, type invalid_request."
		client := tenant.For(t)
		for _, path := range []string{
			"/nothing", "/sites/", "/hubs/" + noHub + "/nothing", "//sites",
			"/sites/" + tenant.Site + "/hubs", "/Sites", "/v1/sites",
		} {
			for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
				client.Rejected(method, path, nil, "not_found")
			}
		}
		allowed := map[string][]string{}
		for _, e := range endpoints {
			allowed[e.path] = append(allowed[e.path], e.method)
		}
		for path, methods := range allowed {
			for _, method := range []string{
				http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch,
				http.MethodDelete, "PURGE",
			} {
				if strings.Contains(strings.Join(methods, " "), method) {
					continue
				}
				e := endpoint{method: method, path: path}
				answer := client.Must(method, e.at(noHub), nil, http.StatusMethodNotAllowed)
				if apiError := harness.CheckAPIError(
					t, answer,
				); apiError.Type != "invalid_request" {
					t.Errorf("%s: got %s, want invalid_request", e, answer.Body)
				}
				for _, method := range methods {
					if !strings.Contains(answer.Header.Get("Allow"), method) {
						t.Errorf(
							"%s: got Allow %q, want %s in it", e, answer.Header.Get("Allow"),
							method,
						)
					}
				}
			}
		}
	})

	t.Run("bodies", func(t *testing.T) {
		// "Request bodies are JSON with Content-Type: application/json"; the design: 64 KiB at
		// most.
		client := tenant.For(t)
		for _, contentType := range []string{
			"text/plain", "application/x-www-form-urlencoded", "application/jsonp",
			"multipart/form-data; boundary=x", "application/json; charset=latin1",
		} {
			client.Rejected(
				http.MethodPost, "/sites", `{"name":"x"}`, "invalid_request", "Content-Type",
				contentType,
			)
		}
		for _, contentType := range []string{
			"application/json", "application/json; charset=utf-8",
			"application/json;charset=UTF-8", "Application/JSON",
		} {
			client.Create("/sites", `{"name":"x"}`, "Content-Type", contentType)
		}
		client.Create("/sites", `{"name":"x"}`+strings.Repeat(" ", 63<<10))
		client.Rejected(
			http.MethodPost, "/sites", `{"name":"x"}`+strings.Repeat(" ", 65<<10),
			"invalid_request",
		)
		client.Rejected(
			http.MethodPost, "/sites",
			`{"name":`+strings.Repeat("[", 30000)+strings.Repeat("]", 30000)+`}`, "invalid_request",
		)
		client.Rejected(http.MethodPost, "/sites", "{\"name\":\"\xff\xfe\"}", "invalid_request")
	})
}
