package portal

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var (
	names    = regexp.MustCompile(`[a-zA-Z][\w-]*`)
	boxNames = regexp.MustCompile(`type="checkbox"[^>]* name="(\w+)"`)
)

// Pages have no look of their own: each class of a page is in the style sheet, or a script looks for
// it.
func TestPagesUseTheDesign(t *testing.T) {
	t.Parallel()
	styled, named := StyledClasses(), map[string]bool{}
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
	for _, path := range pages {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for class := range ClassesOf(string(text)) {
			if !styled[class] && !named[class] {
				t.Errorf("%s: no style and no script for the class %s", path, class)
			}
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
