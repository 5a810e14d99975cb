package portal

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	classes = regexp.MustCompile(`class="((?:[^"{]|\{\{.*?\}\})*)"`)
	action  = regexp.MustCompile(`\{\{.*?\}\}`)
	names   = regexp.MustCompile(`[a-zA-Z][\w-]*`)

	boxNames = regexp.MustCompile(`type="checkbox"[^>]* name="(\w+)"`)
)

// Pages have no look of their own: each class of a page is in the style sheet, or a script looks for it,
// and what four pages use is a component, which the design page shows.
func TestPagesUseTheDesign(t *testing.T) {
	t.Parallel()
	styled, named := map[string]bool{}, map[string]bool{}
	for _, selector := range regexp.MustCompile(`\.([a-zA-Z][\w-]*)`).FindAllStringSubmatch(
		string(Asset("style.css")), -1,
	) {
		styled[selector[1]] = true
	}
	scripts, err := filepath.Glob("assets/*.js")
	if err != nil || len(scripts) < 20 {
		t.Fatalf("got the scripts %v, %v", scripts, err)
	}
	for _, name := range scripts {
		for _, part := range names.FindAllString(string(Asset(filepath.Base(name))), -1) {
			named[part] = true
		}
	}
	pages, err := filepath.Glob("pages/*.html")
	if err != nil || len(pages) < 30 {
		t.Fatalf("got the pages %v, %v", pages, err)
	}
	users, shown := map[string][]string{}, map[string]bool{"hidden": true, "needs-script": true} // no looks
	for _, path := range pages {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, found := range classes.FindAllStringSubmatch(string(text), -1) {
			for _, class := range strings.Fields(action.ReplaceAllString(found[1], " ")) {
				seen[class] = !strings.HasSuffix(class, "-") // the beginning of a name
			}
		}
		for class, whole := range seen {
			if whole && !styled[class] && !named[class] {
				t.Errorf("%s: no style and no script for the class %s", path, class)
			}
			if path == "pages/design.html" {
				shown[class] = true
			} else if path != "pages/layout.html" { // the frame, which the design page has too
				users[class] = append(users[class], path)
			}
		}
	}
	for class, all := range users {
		if len(all) >= 4 && !shown[class] {
			t.Errorf("the design page does not show the component %s of %v", class, all)
		}
	}
}

// After a session had ended, the form of mails was filled in again without a tick, since the draft
// did not have the boxes: sending it again would have stopped all mails.
func TestDraftsHaveEveryBox(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("pages/*.html")
	if err != nil {
		t.Fatal(err)
	}
	boxes := 0
	for _, path := range pages {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, box := range boxNames.FindAllStringSubmatch(string(text), -1) {
			boxes++
			if _, kept := fieldLabels[box[1]]; !kept && box[1] != "details" { // of lists, not of forms
				t.Errorf("%s: a draft does not have the box %s", path, box[1])
			}
		}
	}
	if boxes < 8 {
		t.Errorf("got %d boxes, want those of all pages", boxes)
	}
}
