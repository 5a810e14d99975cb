package docpages

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"

	"hubcloud/hubbridge/protocol"
)

var pages = map[string]Files{"reference": Reference(), "link": Link()}

func get(t *testing.T, files Files, name string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
	if len(header) == 2 {
		r.Header.Set(header[0], header[1])
	}
	if !files.Serve(w, r, name) {
		t.Fatalf("got no file %q, want it", name)
	}
	return w
}

// The page has each rule once, under its anchor, and each heading in the table of contents.
func TestLinkHasRulesAndContents(t *testing.T) {
	t.Parallel()
	page := get(t, pages["link"], "").Body.String()
	for _, rule := range protocol.Rules() {
		link := `<a class="rule" id="` + rule.ID + `" href="#` + rule.ID + `">` + rule.ID + "</a>"
		if strings.Count(page, link) != 1 {
			t.Errorf("rule %s: the page has its anchor %d times", rule.ID, strings.Count(page, link))
		}
	}
	headings := regexp.MustCompile(`<h2 id="([^"]+)">`).FindAllStringSubmatch(page, -1)
	if len(headings) < 10 {
		t.Fatalf("got %d headings, want the sections of the protocol", len(headings))
	}
	for _, heading := range headings {
		if !strings.Contains(page, `<li><a href="#`+heading[1]+`">`) {
			t.Errorf("the contents lack the section %s", heading[1])
		}
	}
}

// A page links to all its files, all its links lead somewhere, and it has nothing that its policy
// forbids.
func TestPagesAreWhole(t *testing.T) {
	t.Parallel()
	elsewhere := map[string]bool{"openapi.yaml": true}
	for kind, files := range pages {
		page := get(t, files, "").Body.String()
		seen := map[string]bool{}
		for _, link := range regexp.MustCompile(`(?:href|src)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
			target := strings.TrimPrefix(link[1], "reference/")
			if id, ok := strings.CutPrefix(target, "#"); ok {
				if !strings.Contains(page, ` id="`+id+`"`) {
					t.Errorf("%s: link %s: the page has no such anchor", kind, target)
				}
			} else if _, ok := files.files[path.Clean(target)]; !ok && !elsewhere[target] {
				t.Errorf("%s: link %s: there is no such file", kind, target)
			}
			seen[target] = true
		}
		for name := range files.files {
			if name != "" && !seen[name] {
				t.Errorf("%s: the page has no link to %s", kind, name)
			}
		}
		blocked := regexp.MustCompile(`<style|style=|<script[^>]*>[^<]|\son[a-z]+=`)
		if inline := blocked.FindString(page); inline != "" {
			t.Errorf("%s: got %s, want none: the policy blocks it", kind, inline)
		}
	}
}

// Every file has its media type, an ETag, and a policy that allows no other origin and nothing
// unsafe. Clients with and without gzip get the same content.
func TestFiles(t *testing.T) {
	t.Parallel()
	types := map[string]string{
		"": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
		".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml", ".png": "image/png",
		".yaml": "application/yaml", ".json": "application/schema+json",
		".md": "text/markdown; charset=utf-8",
	}
	for kind, files := range pages {
		for name := range files.files {
			plain := get(t, files, name)
			header := plain.Header()
			if got := header.Get("Content-Type"); got != types[path.Ext(name)] {
				t.Errorf("%s %q: got Content-Type %q, want %q", kind, name, got, types[path.Ext(name)])
			}
			policy := header.Get("Content-Security-Policy")
			if !strings.HasPrefix(policy, "default-src 'none';") ||
				strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
				t.Errorf("%s %q: got policy %q, want no foreign or inline source", kind, name, policy)
			}
			if header.Get("Cache-Control") != "no-cache" {
				t.Errorf("%s %q: got headers %v, want no-cache", kind, name, header)
			}
			for accept, gzipped := range map[string]bool{
				"gzip": true, "br, GZIP;q=0.5": true, "gzip;q=0": false, "identity": false, "xgzip": false,
			} {
				w := get(t, files, name, "Accept-Encoding", accept)
				content := w.Body.Bytes()
				if (w.Header().Get("Content-Encoding") == "gzip") != gzipped {
					t.Errorf(
						"%s %q with %q: got Content-Encoding %q, want gzip: %t", kind, name, accept,
						w.Header().Get("Content-Encoding"), gzipped,
					)
				} else if gzipped {
					content = decompress(content)
				}
				if !bytes.Equal(content, plain.Body.Bytes()) {
					t.Errorf("%s %q with %q: got other content, want the file's", kind, name, accept)
				}
			}
			known := get(t, files, name, "If-None-Match", `"other", W/`+header.Get("ETag"))
			if known.Code != http.StatusNotModified || known.Body.Len() > 0 {
				t.Errorf("%s %q with its ETag: got %d, want 304 and no body", kind, name, known.Code)
			}
		}
		for _, name := range []string{".", "..", "link", "docpages.go", "nothing", "../openapi.yaml"} {
			w := httptest.NewRecorder()
			if files.Serve(w, httptest.NewRequest(http.MethodGet, "/", nil), name) || w.Body.Len() > 0 {
				t.Errorf("%s %q: got an answer, want none", kind, name)
			}
		}
	}
}
