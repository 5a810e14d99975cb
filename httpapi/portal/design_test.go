package portal

import (
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
	for _, text := range filesOf(t, "assets/*.js") {
		for _, part := range names.FindAllString(text, -1) {
			named[part] = true
		}
	}
	for path, text := range filesOf(t, "pages/*.html") {
		for class := range ClassesOf(text) {
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
	boxes := 0
	for path, text := range filesOf(t, "pages/*.html") {
		for _, box := range boxNames.FindAllStringSubmatch(text, -1) {
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
