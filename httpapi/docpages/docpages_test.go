package docpages

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"hubcloud/hubbridge/protocol"
)

// look is the portal's, as the service passes it.
var look = Look{Tokens: mustRead("../portal/assets/tokens.css"), Icon: mustRead("../portal/assets/icon.svg")}

var pages = map[string]Files{
	"reference": Reference(string(mustRead("../openapi.yaml")), look), "link": Link(look),
	"guides": Guides(os.DirFS("../docs"), look),
}

func mustRead(path string) []byte { return read(os.ReadFile(path)) }

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

// A page has its files and sections, all its links lead somewhere, and it has nothing that its policy
// forbids. Each file but llms.txt has a page that links to it.
func TestPagesAreWhole(t *testing.T) {
	t.Parallel()
	// Where the pages and the documents of the service are, whose links are relative to each other.
	folders := map[string]string{"reference": "/v1/reference", "link": "/link/", "guides": "/docs/"}
	served := map[string]bool{"/portal/": true, "/llms.txt": true}
	for _, name := range []string{"openapi.yaml", "openapi-3.2.yaml", "openapi-root.yaml"} {
		served["/v1/"+name] = true
	}
	for kind, files := range pages {
		for name := range files.files {
			served[path.Join(folders[kind], name)] = true
		}
		served[folders[kind]] = true
	}
	linked := map[string]bool{"/docs/llms.txt": true}
	blocked := regexp.MustCompile(`<style|style=|<script[^>]*>[^<]|\son[a-z]+=`)
	for kind, files := range pages {
		for name, f := range files.files {
			if f.contentType != contentTypeOf(".html") {
				continue
			}
			page := get(t, files, name).Body.String()
			base := &url.URL{Path: folders[kind] + name}
			for _, found := range regexp.MustCompile(`(?:href|src)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
				target, err := base.Parse(found[1])
				if err != nil || target.Host == "" && !served[target.Path] {
					t.Errorf("%s: link %s: the service has no %v, %v", base, found[1], target, err)
				} else if target.Path == base.Path && !strings.Contains(page, ` id="`+target.Fragment+`"`) &&
					target.Fragment != "" {
					t.Errorf("%s: link %s: the page has no such anchor", base, found[1])
				}
				linked[target.Path] = true
			}
			if inline := blocked.FindString(page); inline != "" {
				t.Errorf("%s: got %s, want none: the policy blocks it", base, inline)
			}
		}
	}
	for kind, files := range pages {
		for name := range files.files {
			address := path.Join(folders[kind], name)
			if name == "" {
				address = folders[kind]
			}
			if !linked[address] {
				t.Errorf("no page links to %s", address)
			}
		}
	}
}

// Every file has its media type, an ETag, and a policy that allows no other origin and nothing
// unsafe. Clients with and without gzip get the same content.
func TestFiles(t *testing.T) {
	t.Parallel()
	types := map[string]string{
		"": "text/html; charset=utf-8", ".txt": "text/plain; charset=utf-8", ".css": "text/css; charset=utf-8",
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
