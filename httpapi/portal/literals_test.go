package portal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hubcloud/httpapi/portal/text"
)

// templateParts matches what of a template is no text: scripts' data, actions, and the parts of
// tags but for the attributes that people see or hear.
var (
	templateData   = regexp.MustCompile(`(?s)<script type="application/json".*?</script>`)
	templateAction = regexp.MustCompile(`(?s)\{\{.*?\}\}`)
	templateTag    = regexp.MustCompile(`(?s)<[^>]*>`)
	shownAttribute = regexp.MustCompile(`\s(?:aria-label|title|placeholder|alt|label)="([^"]*)"`)
	word           = regexp.MustCompile(`[\p{L}]{2,}`)
)

// templateWords returns the words that a template shows and that are not from package text.
func templateWords(template string) (words []string) {
	template = templateData.ReplaceAllString(template, "")
	// The names of styles, which templates choose between.
	template = regexp.MustCompile(`(?s)\{\{define "status-class"\}\}.*?\{\{end\}\}\n`).
		ReplaceAllString(template, "")
	template = regexp.MustCompile(`\{\{define "commands"\}\}.*\n`).ReplaceAllString(template, "")
	template = templateAction.ReplaceAllString(template, "")
	for _, tag := range templateTag.FindAllString(template, -1) {
		for _, attribute := range shownAttribute.FindAllStringSubmatch(tag, -1) {
			words = append(words, word.FindAllString(attribute[1], -1)...)
		}
	}
	return append(words, word.FindAllString(templateTag.ReplaceAllString(template, " "), -1)...)
}

// TestTemplatesHaveNoTexts checks that every text that a page shows is in package text, where it
// can be read with the others and translated. Only the name of the product stands in templates.
func TestTemplatesHaveNoTexts(t *testing.T) {
	t.Parallel()
	sample := `<p class="x" title="Say {{.It}}">Hello <b>{{if .A}}there{{end}}</b></p>`
	if got := strings.Join(templateWords(sample), " "); got != "Say Hello there" {
		t.Fatalf("templateWords(%s): got %q, want Say Hello there", sample, got)
	}
	for file, content := range assetsOf(t, "pages/*.html", 25) {
		for _, found := range templateWords(content) {
			if found != "hubcloud" {
				t.Errorf("%s: got the text %q, want {{text …}} with a text of package text", file, found)
			}
		}
	}
}

// scriptLiteral matches a string of a script, and scriptNotes what is no code.
var (
	scriptLiteral = regexp.MustCompile("\"(?:[^\"\\\\\n]|\\\\.)*\"|`(?:[^`\\\\]|\\\\.)*`")
	scriptNotes   = regexp.MustCompile(`(?m)(?:^|\s)//.*$`)
	inserted      = regexp.MustCompile(`\$\{[^}]*\}`)
	sentenceLike  = regexp.MustCompile(`\p{Lu}\p{Ll}|\p{Ll} \p{Ll}`)
)

// notShown are the strings of scripts that look like texts and that nobody sees: names of keys,
// of header fields and of styles, and selectors.
var notShown = regexp.MustCompile(
	`^(Arrow(Up|Down)|Content-Type|Retry-After|Accept|Tab|Enter|Escape` +
		`|(notice|plain|tag|button)( [a-z-]+)+ ?|[.#][a-z-]+ [a-z]+|figcaption b|a bdi` +
		`|#filter-hub .*|nav a\[data-alarms\]|form\.command .*)$`,
)

// scriptTexts returns the strings of a script that look like texts.
func scriptTexts(script string) (texts []string) {
	for _, literal := range scriptLiteral.FindAllString(
		scriptNotes.ReplaceAllString(script, ""), -1,
	) {
		shown := inserted.ReplaceAllString(literal[1:len(literal)-1], "")
		_, named := text.Scripts[shown]
		if sentenceLike.MatchString(shown) && !named && !notShown.MatchString(shown) &&
			!strings.Contains(shown, "${textOf(") {
			texts = append(texts, shown)
		}
	}
	return texts
}

// TestScriptsHaveNoTexts checks the same for the pages' scripts.
func TestScriptsHaveNoTexts(t *testing.T) {
	t.Parallel()
	sample := "say(\"Hub removed\"); say(`${name} is gone.`); style = \"notice bad\"; // No text"
	if got := strings.Join(scriptTexts(sample), ","); got != "Hub removed, is gone." {
		t.Fatalf("scriptTexts(%s): got %q, want both texts", sample, got)
	}
	for file, content := range assetsOf(t, "assets/*.js", 15) {
		if strings.Contains(file, "uPlot") {
			continue // a library, which shows the texts that it gets
		}
		for _, found := range scriptTexts(content) {
			t.Errorf("%s: got the text %q, want textOf with a text of package text", file, found)
		}
	}
}

// assetsOf returns the contents of the files that match the pattern, at least least.
func assetsOf(t *testing.T, pattern string, least int) map[string]string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) < least {
		t.Fatalf("Glob(%q): got %d files and error %v, want at least %d", pattern, len(files), err, least)
	}
	contents := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		contents[file] = string(content)
	}
	return contents
}
