package linkpage

import (
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"

	"hubcloud/hubbridge/protocol"
)

func serve(t *testing.T, name string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	if !Load().Serve(w, name, func(string) bool { return false }) {
		t.Fatalf("got no file %q, want it", name)
	}
	return w
}

// The page has each rule once, under its anchor, and each heading in the table of contents.
func TestPageHasRulesAndContents(t *testing.T) {
	t.Parallel()
	page := serve(t, Index).Body.String()
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

// All links of the page lead somewhere, and the page has nothing that its policy forbids.
func TestPageIsWhole(t *testing.T) {
	t.Parallel()
	files := Load()
	page := serve(t, Index).Body.String()
	links := regexp.MustCompile(`(?:href|src)="([^"]*)"`).FindAllStringSubmatch(page, -1)
	seen := map[string]bool{}
	for _, link := range links {
		target := link[1]
		if id, ok := strings.CutPrefix(target, "#"); ok {
			if !strings.Contains(page, ` id="`+id+`"`) {
				t.Errorf("link %s: the page has no such anchor", target)
			}
			continue
		}
		if _, ok := files[path.Clean(target)]; !ok {
			t.Errorf("link %s: there is no such file", target)
		}
		seen[target] = true
	}
	for name := range files {
		if name != Index && !seen[name] {
			t.Errorf("the page has no link to %s", name)
		}
	}
	blocked := regexp.MustCompile(`<style|style=|<script|\son[a-z]+=`)
	if inline := blocked.FindString(page); inline != "" {
		t.Errorf("got %s, want none: the policy blocks it", inline)
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	types := map[string]string{
		"": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
		".svg": "image/svg+xml", ".yaml": "application/yaml", ".json": "application/schema+json",
		".md": "text/markdown; charset=utf-8",
	}
	for name := range Load() {
		header := serve(t, name).Header()
		if got := header.Get("Content-Type"); got != types[path.Ext(name)] {
			t.Errorf("%q: got Content-Type %q, want %q", name, got, types[path.Ext(name)])
		}
		policy := header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none';") ||
			strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
			t.Errorf("%q: got policy %q, want no foreign or inline source", name, policy)
		}
		if header.Get("ETag") == "" || header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%q: got headers %v, want an ETag and no-cache", name, header)
		}
	}
	etag := serve(t, Index).Header().Get("ETag")
	w := httptest.NewRecorder()
	Load().Serve(w, Index, func(given string) bool { return given == etag })
	if w.Code != http.StatusNotModified || w.Body.Len() > 0 {
		t.Errorf("with the ETag: got %d and %d bytes, want 304 and none", w.Code, w.Body.Len())
	}
	if Load().Serve(httptest.NewRecorder(), "nothing", func(string) bool { return false }) {
		t.Error("a file that does not exist is served")
	}
}
