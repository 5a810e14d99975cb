package portal

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
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
		if err != nil {
			t.Fatal(err)
		}
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

// literals matches a string of a script, and notes what is no code.
var (
	literals     = regexp.MustCompile("\"(?:[^\"\\\\\n]|\\\\.)*\"|`(?:[^`\\\\]|\\\\.)*`")
	notes        = regexp.MustCompile(`(?m)(?:^|\s)//.*$`)
	inserted     = regexp.MustCompile(`\$\{[^}]*\}`)
	sentenceLike = regexp.MustCompile(`\p{Lu}\p{Ll}|\p{Ll} \p{Ll}`)
)

// notShown are the strings of scripts that look like texts and that nobody sees: names of keys,
// of header fields and of styles, and selectors.
var notShown = regexp.MustCompile(
	`^(Arrow(Up|Down)|Content-Type|Retry-After|Accept|Tab|Enter|Escape` +
		`|(notice|plain|tag|button)( [a-z-]+)+ ?|[.#][a-z-]+ [a-z]+|figcaption b|a bdi` +
		`|#filter-hub .*|nav a\[data-alarms\]|form\.command .*)$`,
)

// textsIn returns the strings of a script that look like texts.
func textsIn(script string) (texts []string) {
	for _, literal := range literals.FindAllString(notes.ReplaceAllString(script, ""), -1) {
		shown := inserted.ReplaceAllString(literal[1:len(literal)-1], "")
		_, named := scriptTexts[shown]
		if sentenceLike.MatchString(shown) && !named && !notShown.MatchString(shown) &&
			!strings.Contains(shown, "${textOf(") {
			texts = append(texts, shown)
		}
	}
	return texts
}

// TestScriptsHaveNoTexts checks that scripts show only texts that have a name, so that their words
// are found at one place.
func TestScriptsHaveNoTexts(t *testing.T) {
	t.Parallel()
	sample := "say(\"Hub removed\"); say(`${name} is gone.`); style = \"notice bad\"; // No text"
	if got := strings.Join(textsIn(sample), ","); got != "Hub removed, is gone." {
		t.Fatalf("textsIn(%s): got %q, want both texts", sample, got)
	}
	for file, content := range filesOf(t, "assets/*.js") {
		if strings.Contains(file, "uPlot") || strings.HasSuffix(file, "/texts.js") {
			continue // a library, which shows the texts that it gets; and the texts themselves
		}
		for _, found := range textsIn(content) {
			t.Errorf("%s: got the text %q, want textOf with the name of a text", file, found)
		}
	}
}
