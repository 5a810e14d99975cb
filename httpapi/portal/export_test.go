package portal

import (
	"regexp"
	"strings"
)

var (
	classes   = regexp.MustCompile(`class="((?:[^"{]|\{\{.*?\}\})*)"`)
	action    = regexp.MustCompile(`\{\{.*?\}\}`)
	selectors = regexp.MustCompile(`\.([a-zA-Z][\w-]*)`)
)

// StyledClasses returns the classes that the style sheet has.
func StyledClasses() map[string]bool {
	styled := map[string]bool{}
	for _, selector := range selectors.FindAllStringSubmatch(string(Asset("style.css")), -1) {
		styled[selector[1]] = true
	}
	return styled
}

// ClassesOf returns the classes of a page or its template, but for those that a template completes.
func ClassesOf(text string) map[string]bool {
	found := map[string]bool{}
	for _, classes := range classes.FindAllStringSubmatch(text, -1) {
		for _, class := range strings.Fields(action.ReplaceAllString(classes[1], " ")) {
			if !strings.HasSuffix(class, "-") {
				found[class] = true
			}
		}
	}
	return found
}

// FilesOf returns the contents of the package's files that match a pattern.
var FilesOf = filesOf

// MaskToken returns a form token as it stands on pages.
var MaskToken = maskToken
