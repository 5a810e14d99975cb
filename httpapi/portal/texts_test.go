package portal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"hubcloud/httpapi/portal/text"
)

// TestTextsExist checks that every text that a script or a template names exists. A script showed
// the name in place of a missing text, and a page failed.
func TestTextsExist(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		files, uses string
		exists      func(name string) bool
	}{
		{"assets/*.js", `textOf\(\s*"([^"]+)"`, func(name string) bool {
			return text.Scripts[name] != ""
		}},
		{"assets/*.js", `textOf\([^"()]+\? "([^"]+)" : "([^"]+)"`, func(name string) bool {
			return text.Scripts[name] != ""
		}},
		{"pages/*.html", `[({ ](?:text|sentence) "([^"]+)"`, func(name string) bool {
			return text.Pages[name] != ""
		}},
		{"pages/*.html", `[({ ]script "([^"]+)"`, func(name string) bool {
			return text.Scripts[name] != ""
		}},
		{"*.go", `text\.Pages\["([^"]+)"\]`, func(name string) bool {
			return text.Pages[name] != ""
		}},
		{"*.go", `text\.Scripts\["([a-z -]+)"\]`, func(name string) bool {
			return text.Scripts[name] != ""
		}},
	} {
		files, err := filepath.Glob(of.files)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, use := range regexp.MustCompile(of.uses).FindAllStringSubmatch(string(content), -1) {
				for _, name := range use[1:] {
					if found++; !of.exists(name) {
						t.Errorf("%s: got no text %q, want one in package text", file, name)
					}
				}
			}
		}
		if found < 3 {
			t.Errorf("%s: got %d uses of texts, want more", of.files, found)
		}
	}
}
