package portal_test

import (
	"compress/gzip"
	"io"
	"strings"
	"testing"
)

// A page is compressed only if another site cannot have asked for it, and shows its form token
// differently each time: text in the address, beside a secret, revealed the secret by the size.
func TestPagesAreCompressed(t *testing.T) {
	t.Parallel()
	b := newHubBackend(t)
	load := func(site string) (page string, compressed bool) {
		t.Helper()
		response := b.ask("GET", "/sites", nil, "Sec-Fetch-Site", site, "Accept-Encoding", "gzip")
		var err error
		reader := io.Reader(response.Body)
		if compressed = response.Header.Get("Content-Encoding") == "gzip"; compressed {
			if reader, err = gzip.NewReader(reader); err != nil {
				t.Fatal(err)
			}
		}
		text, err := io.ReadAll(reader)
		if err != nil || !strings.Contains(string(text), "</html>") {
			t.Fatalf("from %q: got %s, %v, want a page", site, text, err)
		}
		return string(text), compressed
	}
	shown := map[string]bool{}
	const field = `name="form_token" value="`
	for site, want := range map[string]bool{
		"none": true, "same-origin": true, "same-site": false, "cross-site": false, "": false,
	} {
		page, compressed := load(site)
		if compressed != want {
			t.Errorf("a page asked for from %q: compressed %t, want %t", site, compressed, want)
		}
		_, token, _ := strings.Cut(page, field)
		token, _, _ = strings.Cut(token, `"`)
		if shown[token] || strings.Contains(page, formToken) {
			t.Errorf("got the form token as %q, want it different each time", token)
		}
		shown[token] = true
	}
}
