package contract

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"hubcloud/httpapi/docpages"
	"hubcloud/test/harness"
	"hubcloud/test/openapi"
)

// description requests what openapi.yaml describes beyond the contract, and provokes on every route
// the answers that other parts provoke on some. The client checks all answers against openapi.yaml.
func description(t *testing.T, c *harness.Target) {
	// Bodies of more than 64 KiB are rejected everywhere, also by routes without a body.
	large := strings.Repeat(" ", 64<<10+1)

	t.Run("the document", func(t *testing.T) {
		// The design, section 6: "`openapi.yaml` (3.1, written first, served at `/v1/openapi.yaml`,
		// with a page to read and try it)".
		client := harness.NewClient(t, c.Base, "")
		api, root, err := openapi.Texts()
		harness.Must(t, err)
		for path, text := range map[string]string{
			"/openapi.yaml": api, "/openapi-root.yaml": root,
			"/openapi-3.2.yaml": docpages.OpenAPI32(api),
		} {
			got := client.Get(path)
			if string(got.Body) != text {
				t.Errorf("%s: got another document than this suite checks answers against", path)
			}
			tag := got.Header.Get("ETag")
			client.Must(http.MethodGet, path, nil, http.StatusNotModified, "If-None-Match", tag)
			client.Get(path, "If-None-Match", `"another"`)
			client.Must(http.MethodHead, path, nil, http.StatusOK)
			client.Must(
				http.MethodHead, path, nil, http.StatusNotModified, "If-None-Match", "W/"+tag,
			)
			client.Rejected(http.MethodGet, path, large, "invalid_request")
			client.Must(http.MethodHead, path, large, http.StatusBadRequest)
		}
		page := client.Get("/reference")
		if !strings.HasPrefix(page.Header.Get("Content-Type"), "text/html") ||
			!strings.Contains(string(page.Body), "reference/reference.js") {
			t.Errorf("reference page: got %s, want HTML that loads reference.js", page.Body)
		}
		client.Get("/reference/reference.js")
		client.Rejected(http.MethodGet, "/reference/nothing.js", nil, "not_found")
	})

	t.Run("many commands", func(t *testing.T) {
		client := c.For(t).Tenant("Many commands")
		const body = `{"key":"lock","value":true,"channels":[{"hub_id":"hub-0000-0000-0000","device_id":1}]}`
		sent := client.Command("/commands", body, "Idempotency-Key", "many")
		var commands struct{ ID string }
		harness.Must(t, json.Unmarshal(sent.Body, &commands))
		client.Rejected(
			http.MethodPost, "/commands", strings.Replace(body, "true", "false", 1),
			"idempotency_conflict", "Idempotency-Key", "many",
		)
		client.Rejected(http.MethodPost, "/commands", large, "invalid_request")
		path := "/commands/" + commands.ID
		client.Get(path)
		client.Rejected(http.MethodGet, path, large, "invalid_request")
		client.Rejected(http.MethodGet, "/commands/none", nil, "not_found")
	})

	t.Run("what needs attention", func(t *testing.T) {
		client := c.For(t).Tenant("Attention")
		var page struct{ Data []json.RawMessage }
		client.Get("/attention").JSON(t, &page)
		if len(page.Data) > 0 {
			t.Errorf("got %s of an organization without hubs, want nothing", page.Data)
		}
		client.Rejected(http.MethodGet, "/attention?limit=0", nil, "invalid_request")
	})

	t.Run("the state of the process", func(t *testing.T) {
		client := harness.NewClient(t, c.Public, "")
		for _, path := range []string{"/healthz", "/readyz"} {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				client.Must(method, path, nil, http.StatusOK)
				client.Must(method, path, large, http.StatusBadRequest)
			}
		}
	})

	t.Run("certificates", func(t *testing.T) {
		client := harness.NewClient(t, c.Public, "")
		for _, body := range []string{
			"", "{}", `{"serial":"HUB-7K2M-Q4XD-93TA","secret":"x"}`, large,
		} {
			client.Rejected(http.MethodPost, "/link/v1/certificates", body, "invalid_request")
		}
	})

	t.Run("a hub's faults on every route", func(t *testing.T) {
		// "Live device calls can additionally answer 404, 502 hub_error, 503 hub_offline or
		// hub_unavailable, and 504 hub_timeout."
		client := c.Tenant("Description")
		hub := c.For(t).RawHub()
		var kind atomic.Value
		hub.OnRequest(func(harness.Request) harness.Response {
			return harness.Response{
				Error: &harness.LinkError{Type: kind.Load().(string), Message: "as asked"},
			}
		})
		hub.Enroll()
		hub.GoOnline()
		client.Add(hub.Serial)
		for _, e := range endpoints {
			if e.live {
				kind.Store("hub_unavailable")
				client.Rejected(e.method, e.at(hub.ID), e.sent(), "hub_unavailable")
				kind.Store("out_of_smoke")
				client.Rejected(e.method, e.at(hub.ID), e.sent(), "hub_error")
			}
		}
	})
}
