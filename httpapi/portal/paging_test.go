package portal_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"hubcloud/domain"
)

// nextPage returns the address of the next page of a list; "" if there is none.
func nextPage(t *testing.T, from, page, list string) string {
	t.Helper()
	for _, link := range regexp.MustCompile(`href="([^"]*)">Next page<`).FindAllStringSubmatch(page, -1) {
		if address := strings.ReplaceAll(link[1], "&amp;", "&"); strings.HasSuffix(
			address, "#"+list,
		) {
			base, err := url.Parse(public + from)
			if err != nil {
				t.Fatal(err)
			}
			to, err := base.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			return to.RequestURI()
		}
	}
	return ""
}

// Lists showed only their first 200 items. Following the links shows each item once and keeps the
// search.
func TestListsHavePages(t *testing.T) {
	t.Parallel()
	w := newBackend()
	w.extra = 120
	b := w.open(t, nil).signIn("olga@example.org")
	for _, c := range []struct {
		path, list string
		item       func(int) string
	}{
		{
			"/members", "people",
			func(i int) string { return fmt.Sprintf("<bdi dir=\"ltr\">m%d@example.org", i) },
		},
		{
			"/members?find=m", "people",
			func(i int) string { return fmt.Sprintf("<bdi dir=\"ltr\">m%d@example.org", i) },
		},
		{
			"/members?people=m3", "invitations",
			func(i int) string { return fmt.Sprintf("<bdi dir=\"ltr\">i%d@example.org", i) },
		},
		{"/keys", "keys", func(i int) string { return fmt.Sprintf("<bdi>the key %d<", i) }},
		{"/sites", "sites", func(i int) string { return fmt.Sprintf("<b><bdi>the site %d<", i) }},
		{
			"/sites?site=far&find=0000", "hubs",
			func(i int) string { return fmt.Sprintf("<b>hub-0000-0000-%04d<", i) },
		},
	} {
		seen, pages, path := make([]int, w.extra), 0, inOne+c.path
		_, kept, _ := strings.Cut(c.path, "?")
		for path != "" && pages < 5 {
			page := b.get(path, 200)
			checkPage(t, page)
			for i := range seen {
				seen[i] += strings.Count(page, c.item(i))
			}
			if back := strings.Contains(page, `>First page<`); back != (pages > 0) &&
				!strings.Contains(kept, "people=") {
				t.Errorf("%s: a way back: %t", path, back)
			}
			path = nextPage(t, path, page, c.list)
			if asked, err := url.ParseQuery(kept); err != nil ||
				path != "" && !hasAll(path, asked) {
				t.Errorf("%s leads to %s", c.path, path)
			}
			pages++
		}
		for i, times := range seen {
			if times != 1 {
				t.Errorf("%s: item %d is seen %d times in %d pages", c.path, i, times, pages)
				break
			}
		}
	}
}

// hasAll reports whether an address has all parameters of a query.
func hasAll(address string, all url.Values) bool {
	parsed, err := url.Parse(address)
	if err != nil {
		return false
	}
	for name := range all {
		if parsed.Query().Get(name) != all.Get(name) {
			return false
		}
	}
	return true
}

// An action redirects back to the page of the list that it was on, and keeps the search. A removed
// item in the address shows the first page; unknown parameters are dropped.
func TestActionsKeepListPosition(t *testing.T) {
	t.Parallel()
	w := newBackend()
	w.extra = 120
	b := w.open(t, nil).signIn("olga@example.org")
	const at = "?find=m&people=m49"
	page := b.get(inOne+"/members"+at+"&evil=1", 200)
	if strings.Contains(page, "evil") ||
		!strings.Contains(page, "members/m50/role"+strings.ReplaceAll(at, "&", "&amp;")) {
		t.Error(page)
	}
	for path, list := range map[string]string{
		"/members/m50/role": "/members", "/members/m50/remove": "/members",
		"/invitations/i3/revoke": "/members",
	} {
		if to, _ := b.post(inOne+path+at, 303, "role", "admin"); to != inOne+list+at {
			t.Errorf("%s leads to %s", path, to)
		}
	}
	if page := b.get(inOne+"/members?people=gone", 200); !strings.Contains(
		page, "olga@example.org",
	) {
		t.Error(page)
	}
	if page := b.get(inOne+"/sites?site=none", 200); !strings.Contains(page, "hub-7k2m-q4xd-93ta") {
		t.Error(page)
	}
	if page := b.get(inOne+"/sites?site=far", 200); strings.Contains(page, "hub-7k2m-q4xd-93ta") {
		t.Error(page)
	}
	if page := b.get(inOne+"/members?find=nobody", 200); !strings.Contains(page, "Show all") {
		t.Error(page)
	}
}

// The confirmation page found only the first 200 keys.
func TestAnyKeyCanBeRevoked(t *testing.T) {
	t.Parallel()
	w := newBackend()
	w.extra = 300
	b := w.open(t, nil).signIn("olga@example.org")
	if page := b.get(inOne+"/keys/k299/revoke", 200); !strings.Contains(page, "the key 299") {
		t.Error(page)
	}
}

// Reloading the page with a new key created another key. A form that was submitted before does
// nothing.
func TestFormIsSubmittedOnce(t *testing.T) {
	t.Parallel()
	w := newBackend()
	b := w.open(t, nil).signIn("olga@example.org")
	form := url.Values{
		"form_token": {b.session().FormToken},
		"once":       {"mark"},
		"label":      {"Meter"},
		"scope":      {"hubs:read"},
	}
	for i, status := range []int{http.StatusCreated, http.StatusSeeOther, http.StatusSeeOther} {
		response, page := b.do("POST", inOne+"/keys", form, nil)
		if response.StatusCode != status || strings.Contains(page, "keyid-and-secret") != (i == 0) {
			t.Errorf("%d: %d %s", i, response.StatusCode, page)
		}
	}
	if page := b.get(inOne+"/keys", 200); !strings.Contains(page, "already been created") ||
		len(w.did) != 1 {
		t.Errorf("done %q: %s", w.did, page)
	}
	// What was refused may be sent again, also from the page before.
	form.Set("once", "of one that is refused")
	w.err = domain.Errorf(domain.CodeInvalidRequest, "label: is none")
	if response, _ := b.do("POST", inOne+"/keys", form, nil); response.StatusCode != http.StatusBadRequest {
		t.Errorf("refused: %d", response.StatusCode)
	}
	w.err = nil
	if response, _ := b.do("POST", inOne+"/keys", form, nil); response.StatusCode != http.StatusCreated {
		t.Errorf("after it was refused: %d", response.StatusCode)
	}
	w.did = w.did[:1]
	form.Del("once")
	if response, _ := b.do("POST", inOne+"/keys", form, nil); response.StatusCode != http.StatusForbidden ||
		len(w.did) != 1 {
		t.Errorf("without a mark: %d, done %q", response.StatusCode, w.did)
	}
	form = url.Values{"form_token": {b.session().FormToken}, "once": {"another"}, "name": {"Mill"}}
	for range 2 {
		if response, _ := b.do("POST", inOne+"/sites", form, nil); response.StatusCode != http.StatusSeeOther {
			t.Errorf("a site: %d", response.StatusCode)
		}
	}
	if len(w.did) != 2 {
		t.Errorf("done %q", w.did)
	}
}
