package portal_test

import (
	"net/http"
	"regexp"
	"slices"
	"testing"

	"hubcloud/domain"
	"hubcloud/httpapi/portal"
)

// The page of help has an answer at each place that another page links to.
func TestHelp(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	b := w.open(t, nil).signIn(max)
	page := b.get(inOne+"/help", http.StatusOK)
	checkPage(t, page)
	links := 0
	for _, content := range portal.FilesOf(t, "pages/*.html") {
		for _, link := range regexp.MustCompile(`/help#([a-z]+)"`).FindAllStringSubmatch(content, -1) {
			links++
			has(t, page, `id="`+link[1]+`"`)
		}
	}
	if links < 3 {
		t.Errorf("got %d links to the page of help, want 3 or more", links)
	}
}

// frames are classes that only place what is in them, or that the whole page has.
var frames = []string{
	"board", "brand", "collapsed", "columns", "halves", "help", "hidden-with-script", "hub-board",
	"no-print", "search", "solo", "whole",
}

// The page of the design shows everything that pages are made of. It is there for development only.
func TestDesign(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	page := w.open(t, nil).signIn(olga).get(inOne+"/design", http.StatusOK)
	has(t, checkPage(t, page), `class="tag bad"`, `data-main="lock/0" data-is="false"`, "aria-invalid")
	styled, shown := portal.StyledClasses(), portal.ClassesOf(page)
	for path, text := range portal.FilesOf(t, "pages/*.html") {
		for class := range portal.ClassesOf(text) {
			if styled[class] && !shown[class] && !slices.Contains(frames, class) {
				t.Errorf("the design page does not show %s of %s", class, path)
			}
		}
	}
	live := w.open(t, func(c *portal.Config) { c.Environment = domain.EnvironmentLive }).signIn(olga)
	live.get(inOne+"/design", http.StatusNotFound)
}
