package httpapi

import (
	"strings"
	"testing"

	"hubcloud/domain"
)

// The hub protocol's page and documents and the guides need no key. Other paths below /link/ and /docs/
// are unknown, and the address of the first page without its slash leads to it.
func TestLinkPages(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for path, want := range map[string]string{
		"/link/":                   "<!doctype html>",
		"/link/asyncapi.yaml":      "asyncapi: 3.0.0",
		"/link/README.md":          "# The hub protocol",
		"/link/docs.css":           "/*",
		"/link/schemas/hello.json": "{",
		"/docs/":                   "<!doctype html>",
		"/docs/first-call":         "<!doctype html>",
		"/docs/first-call.md":      "# First call",
	} {
		// the client hides the length of what it decompresses
		page := s.do("GET", path, "", "Authorization", "", "Accept-Encoding", "identity")
		if page.StatusCode != 200 || !strings.HasPrefix(page.body, want) {
			t.Errorf("GET %s: got %d %.40q, want 200 %q", path, page.StatusCode, page.body, want)
		}
		checkHeaders(t, page)
		head := s.do("HEAD", path, "", "Authorization", "")
		if head.StatusCode != 200 || head.body != "" ||
			head.Header.Get("Content-Length") != page.Header.Get("Content-Length") {
			t.Errorf("HEAD %s: got %d %v, want the headers of GET", path, head.StatusCode, head.Header)
		}
		again := s.do("GET", path, "", "Authorization", "", "If-None-Match", page.Header.Get("ETag"))
		if again.StatusCode != 304 || again.body != "" {
			t.Errorf("GET %s with its ETag: got %d %q, want 304", path, again.StatusCode, again.body)
		}
		rejected := s.do("POST", path, "{}", "Authorization", "")
		wantError(t, rejected, 405, domain.CodeInvalidRequest)
	}
	for _, path := range []string{
		"/link/nothing", "/link/schemas/", "/link/schemas/nothing.json", "/link/schemas",
		"/link/v1", "/link/schemas/../asyncapi.yaml/x", "/docs/nothing",
	} {
		wantError(t, s.do("GET", path, "", "Authorization", ""), 404, domain.CodeNotFound)
	}
	for _, folder := range []string{"/link", "/docs"} {
		page := s.do("GET", folder, "", "Authorization", "")
		if page.StatusCode != 200 || !strings.HasPrefix(page.body, "<!doctype html>") ||
			page.Request.URL.Path != folder+"/" {
			t.Errorf("GET %s: got %d at %s, want the page", folder, page.StatusCode, page.Request.URL)
		}
	}
}
