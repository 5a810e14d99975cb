package portal

import (
	"io/fs"
	"os"
	"regexp"
	"testing"

	"hubcloud/streams/streamstest"
)

// filesOf returns the contents of the package's files that match a pattern.
func filesOf(t *testing.T, pattern string) map[string]string {
	t.Helper()
	folder := os.DirFS(".")
	names, err := fs.Glob(folder, pattern)
	if err != nil || len(names) < 15 {
		t.Fatalf("Glob(%q): got %d files and error %v, want more", pattern, len(names), err)
	}
	contents := map[string]string{}
	for _, name := range names {
		content, err := fs.ReadFile(folder, name)
		streamstest.Must(t, err)
		contents[name] = string(content)
	}
	return contents
}

// TestTextsExist checks that every text that a script names exists. A script showed the name in
// place of a missing text.
func TestTextsExist(t *testing.T) {
	t.Parallel()
	own := map[string]bool{} // the texts that only scripts show
	for _, text := range regexp.MustCompile(`(?m)^  "?([a-z0-9 -]+)"?: "`).FindAllStringSubmatch(
		filesOf(t, "assets/*.js")["assets/texts.js"], -1,
	) {
		own[text[1]] = true
	}
	for pattern, uses := range map[string]string{
		"assets/*.js": `textOf\((?:\s*|[^"()]+\? )"([^"]+)"(?: : "([^"]+)")?`,
		"*.go":        `scriptTexts\["([a-z -]+)"\]()`,
	} {
		found := 0
		for file, content := range filesOf(t, pattern) {
			for _, use := range regexp.MustCompile(uses).FindAllStringSubmatch(content, -1) {
				for _, name := range use[1:] {
					if found++; name != "" && scriptTexts[name] == "" && !own[name] {
						t.Errorf("%s: got no text %q, want one", file, name)
					}
				}
			}
		}
		if found < 3 {
			t.Errorf("%s: got %d uses of texts, want more", pattern, found)
		}
	}
}
