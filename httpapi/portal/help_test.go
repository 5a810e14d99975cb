package portal_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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
	files, err := filepath.Glob("pages/*.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range regexp.MustCompile(`/help#([a-z]+)"`).FindAllSubmatch(content, -1) {
			links++
			if !strings.Contains(page, `id="`+string(link[1])+`"`) {
				t.Errorf("%s links to help#%s, which the page of help does not have", file, link[1])
			}
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
	checkPage(t, page)
	for _, want := range []string{`class="tag bad"`, `data-main="lock/0" data-is="false"`, "aria-invalid"} {
		if !strings.Contains(page, want) {
			t.Errorf("got %s, want %q in it", page, want)
		}
	}
	styled, shown := portal.StyledClasses(), portal.ClassesOf(page)
	pages, err := filepath.Glob("pages/*.html")
	if err != nil || len(pages) < 30 {
		t.Fatalf("got the pages %v, %v", pages, err)
	}
	for _, path := range pages {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for class := range portal.ClassesOf(string(text)) {
			if styled[class] && !shown[class] && !slices.Contains(frames, class) {
				t.Errorf("the design page does not show %s of %s", class, path)
			}
		}
	}
	live := w.open(t, func(c *portal.Config) { c.Environment = domain.EnvironmentLive }).signIn(olga)
	live.get(inOne+"/design", http.StatusNotFound)
}
