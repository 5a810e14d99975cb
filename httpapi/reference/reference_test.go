package reference

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func get(t *testing.T, name, acceptEncoding string) *httptest.ResponseRecorder {
	t.Helper()
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v1/reference/"+name, nil)
	if acceptEncoding != "" {
		r.Header.Set("Accept-Encoding", acceptEncoding)
	}
	if !Load().Serve(w, r, name) {
		t.Fatalf("got no file %s, want it", name)
	}
	return w
}

// All files that the page loads exist and are from its own origin, and the page contains nothing
// that its policy forbids.
func TestPageIsWhole(t *testing.T) {
	t.Parallel()
	page := get(t, Index, "").Body.String()
	loaded := regexp.MustCompile(`(?:src|<link[^>]* href)="([^"]*)"`).
		FindAllStringSubmatch(page, -1)
	if len(loaded) != len(Load())-1 {
		t.Errorf("the page loads %d files, want %d", len(loaded), len(Load())-1)
	}
	for _, link := range loaded {
		name, ours := strings.CutPrefix(link[1], "reference/")
		if _, ok := Load()[name]; !ours || !ok {
			t.Errorf("%s: not one of the files, want all", link[1])
		}
	}
	blocked := regexp.MustCompile(`<style|style=|<script[^>]*>[^<]|\son[a-z]+=`)
	if inline := blocked.FindString(page); inline != "" {
		t.Errorf("got inline %s, want none: the policy blocks it", inline)
	}
}

// Every file has its media type and the policy, which allows no other origin and nothing
// unsafe.
func TestHeaders(t *testing.T) {
	t.Parallel()
	types := map[string]string{
		Index: "text/html; charset=utf-8", "reference.js": "text/javascript; charset=utf-8",
		"reference.css":        "text/css; charset=utf-8",
		"swagger-ui-bundle.js": "text/javascript; charset=utf-8",
		"swagger-ui.css":       "text/css; charset=utf-8", "favicon-32x32.png": "image/png",
	}
	for name := range Load() {
		header := get(t, name, "").Header()
		if got := header.Get("Content-Type"); got != types[name] {
			t.Errorf("%s: got Content-Type %q, want %q", name, got, types[name])
		}
		policy := header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none';") ||
			strings.Contains(policy, "unsafe") ||
			strings.Contains(policy, "http") {
			t.Errorf("%s: got policy %q, want no foreign or inline source", name, policy)
		}
	}
}

// Clients with and without gzip get the same content.
func TestEncodings(t *testing.T) {
	t.Parallel()
	for name := range Load() {
		plain := get(t, name, "")
		for accept, gzipped := range map[string]bool{
			"gzip": true, "br, GZIP;q=0.5": true, "gzip, deflate, br": true, "gzip;q=0": false,
			"identity": false, "xgzip": false, "br": false,
		} {
			w := get(t, name, accept)
			content := w.Body.Bytes()
			if (w.Header().Get("Content-Encoding") == "gzip") != gzipped {
				t.Errorf(
					"%s with %q: got Content-Encoding %q, want gzip: %t", name, accept,
					w.Header().Get("Content-Encoding"), gzipped,
				)
			} else if gzipped {
				content = decompress(content)
			}
			if !bytes.Equal(content, plain.Body.Bytes()) {
				t.Errorf("%s with %q: got other content, want the file's", name, accept)
			}
		}
	}
}

// Files that the page does not load are not found, nor is the folder itself.
func TestNoSuchFile(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"", ".", "..", "files", "reference.go", "swagger-ui.js", "oauth2-redirect.html",
		"../openapi.yaml",
	} {
		w := httptest.NewRecorder()
		if Load().Serve(w, httptest.NewRequest(http.MethodGet, "/", nil), name) ||
			w.Body.Len() > 0 {
			t.Errorf("%q: got an answer, want none", name)
		}
	}
}
