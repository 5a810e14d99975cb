package portal_test

import (
	"crypto/sha512"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/portal"
	"hubcloud/projections/projectionstest"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// nextPage returns the address of the next page of a list; "" if there is none.
func nextPage(t *testing.T, from, page, list string) string {
	t.Helper()
	links := regexp.MustCompile(`href="([^"]*)">Next page<`)
	for _, link := range links.FindAllStringSubmatch(page, -1) {
		if address := strings.ReplaceAll(link[1], "&amp;", "&"); strings.HasSuffix(
			address, "#"+list,
		) {
			base, err := url.Parse(public + from)
			streamstest.Must(t, err)
			to, err := base.Parse(address)
			streamstest.Must(t, err)
			return to.RequestURI()
		}
	}
	return ""
}

// manyItems is how many items of a kind the fill methods add: more than two pages. They append
// facts to the directory, which is much faster than its commands.
const manyItems = 110

const memberKind, invitationKind, siteKind = 'a', 'b', 'c'

// itemID returns the id of the item i of a kind, a hexadecimal digit, in the first organization.
func (w *backend) itemID(kind byte, i int) string {
	return fmt.Sprintf("%s%c%04d", w.mill.ID[:31], kind, i)
}

// hubID returns the id of the hub i of fillSites.
func (w *backend) hubID(i int) domain.HubID {
	return domain.HubID(fmt.Sprintf("hub-0000-%04d-%04d", w.number, i))
}

// fillPeople adds members and invitations.
func (w *backend) fillPeople(t *testing.T) {
	t.Helper()
	org := w.mill.ID
	var facts []domain.Fact
	for i := range manyItems {
		facts = append(facts, domain.MemberAdded{
			OrgID: org, MemberID: w.itemID(memberKind, i), Role: domain.RoleMember,
			Email: w.toReal.Replace(fmt.Sprintf("m%d@example.org", i)),
		}, domain.MemberInvited{
			OrgID: org, InvitationID: w.itemID(invitationKind, i), Role: domain.RoleAdmin,
			Email:     w.toReal.Replace(fmt.Sprintf("i%d@example.org", i)),
			TokenHash: make([]byte, 32), ExpiresAt: time.Now().Add(time.Hour),
		})
	}
	last := w.Env.Append(t, streams.OrgSubject(org), facts...)
	projectionstest.Await(t, w.Backend.Store, last)
	projectionstest.Await(t, w.Access, last)
}

// fillKeys adds API keys.
func (w *backend) fillKeys(t *testing.T) {
	t.Helper()
	var last uint64
	for i := range manyItems {
		label := fmt.Sprint("the key ", i)
		key := domain.NewKey(domain.EnvironmentDev, sha512.Sum384([]byte(w.mill.ID+label)))
		hash := key.SecretHash()
		last = w.Env.Append(t, streams.KeySubject(key.ID), domain.KeyCreated{
			KeyID: key.ID, OrgID: w.mill.ID, Label: label, Environment: domain.EnvironmentDev,
			SecretHash: hash[:], Scopes: []domain.Scope{domain.ScopeHubsRead},
		})
	}
	projectionstest.Await(t, w.Backend.Store, last)
}

// fillSites adds sites, and hubs at the first of them.
func (w *backend) fillSites(t *testing.T) {
	t.Helper()
	var last uint64
	for i := range manyItems {
		id := w.itemID(siteKind, i)
		w.Env.Append(t, streams.SiteSubject(w.mill.ID, id), domain.SiteCreated{
			OrgID: w.mill.ID, SiteID: id, Name: fmt.Sprint("the site ", i),
		})
		hub := w.hubID(i)
		last = w.Env.Append(t, streams.HubSubject(hub), domain.HubAdded{
			HubID: hub, OrgID: w.mill.ID, SiteID: w.itemID(siteKind, 0),
			EpochID: domain.NewEpochID(uint32(i)),
		})
	}
	projectionstest.Await(t, w.Backend.Store, last)
}

// Lists showed only their first 200 items, and the page that confirms found only the first 200 keys.
// Following the links shows each item once and keeps the search.
func TestListsHavePages(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	w.fillPeople(t)
	oldest, _ := w.mill.NewKey(t, domain.ScopeHubsRead)
	w.fillKeys(t)
	w.fillSites(t)
	far := w.itemID(siteKind, 0)
	b := w.open(t, nil).signIn(olga)
	has(t, b.get(inOne+"/keys/"+oldest+"/revoke", 200), "<bdi>test</bdi>")
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
			"/members?people=" + w.itemID(memberKind, 3), "invitations",
			func(i int) string { return fmt.Sprintf("<bdi dir=\"ltr\">i%d@example.org", i) },
		},
		{"/keys", "keys", func(i int) string { return fmt.Sprintf("<bdi>the key %d<", i) }},
		{"/sites", "sites", func(i int) string { return fmt.Sprintf("\"><bdi>the site %d<", i) }},
		{
			"/sites?site=" + far + "&find=0000", "hubs",
			func(i int) string { return fmt.Sprintf("<b>%s<", w.hubID(i)) },
		},
	} {
		seen, pages, path := make([]int, manyItems), 0, inOne+c.path
		_, kept, _ := strings.Cut(c.path, "?")
		for path != "" && pages < 5 {
			page := b.get(path, 200)
			checkPage(t, page)
			for i := range seen {
				seen[i] += strings.Count(page, c.item(i))
			}
			if back := strings.Contains(page, `>First page<`); back != (pages > 0) &&
				!strings.Contains(kept, "people=") {
				t.Errorf("%s: got a link to the first page: %t, want %t", path, back, pages > 0)
			}
			path = nextPage(t, path, page, c.list)
			if asked, err := url.ParseQuery(kept); err != nil ||
				path != "" && !hasAll(path, asked) {
				t.Errorf("%s: got next page %s, want the same query", c.path, path)
			}
			pages++
		}
		for i, times := range seen {
			if times != 1 {
				t.Errorf("%s: got item %d %d times in %d pages, want once", c.path, i, times, pages)
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
	w := newBackend(t)
	w.fillPeople(t)
	far := w.newSite(t)
	b := w.open(t, nil).signIn(olga)
	at := "?find=m&people=" + w.itemID(memberKind, 49)
	next := "/members/" + w.itemID(memberKind, 50)
	page := b.get(inOne+"/members"+at+"&evil=1", 200)
	lacks(t, has(t, page, next[1:]+"/role"+strings.ReplaceAll(at, "&", "&amp;")), "evil")
	for _, path := range []string{
		next + "/role", next + "/remove",
		"/invitations/" + w.itemID(invitationKind, 3) + "/revoke",
	} {
		if to, _ := b.post(inOne+path+at, 303, "role", "admin"); to != inOne+"/members"+at {
			t.Errorf("%s: redirected to %s, want /members%s", path, to, at)
		}
	}
	for path, c := range map[string]struct {
		text string
		want bool
	}{
		"/members?people=gone": {olga, true},
		"/members?find=nobody": {"Show all", true},
		"/sites?site=none":     {string(ownHub), true},
		"/sites?site=" + far:   {string(ownHub), false},
	} {
		page := b.get(inOne+path, 200)
		if got := strings.Contains(page, c.text); got != c.want {
			t.Errorf("%s: got %s, want %q in it: %t", path, page, c.text, c.want)
		}
	}
}

// Reloading the page with a new key created another key. A form that was submitted before does
// nothing.
func TestFormIsSubmittedOnce(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	b := w.open(t, nil).signIn(olga)
	form := url.Values{
		"form_token": {portal.MaskToken(b.session().FormToken)}, "once": {"mark"}, "label": {"Meter"},
		"scope": {"hubs:read"},
	}
	var created uint64
	for i, status := range []int{http.StatusCreated, http.StatusSeeOther, http.StatusSeeOther} {
		response, page := b.do("POST", inOne+"/keys", form, nil)
		if response.StatusCode != status || apiKey.MatchString(page) != (i == 0) {
			t.Errorf("submission %d: got %d %s, want %d", i, response.StatusCode, page, status)
		}
		if i == 0 {
			created = w.changes(t)
		}
	}
	if page := b.get(inOne+"/keys", 200); !strings.Contains(page, "already been created") ||
		w.changes(t) != created {
		t.Errorf("got change %q and %s, want one key", w.lastChange(t, w.mill), page)
	}
	// A rejected form may be submitted again, also from the page before.
	form.Set("once", "of a rejected form")
	form.Set("label", strings.Repeat("x", 300))
	for _, status := range []int{http.StatusBadRequest, http.StatusCreated} {
		if response, page := b.do("POST", inOne+"/keys", form, nil); response.StatusCode != status {
			t.Errorf("rejected form: got %d %s, want %d", response.StatusCode, page, status)
		}
		form.Set("label", "Meter")
	}
	form.Del("once")
	created = w.changes(t)
	response, _ := b.do("POST", inOne+"/keys", form, nil)
	if response.StatusCode != http.StatusForbidden || w.changes(t) != created {
		t.Errorf("without submission id: got %d, want 403 and no change", response.StatusCode)
	}
	form = url.Values{"form_token": {portal.MaskToken(b.session().FormToken)}, "once": {"another"}, "name": {"Far"}}
	for i := range 2 {
		response, _ := b.do("POST", inOne+"/sites", form, nil)
		if response.StatusCode != http.StatusSeeOther {
			t.Errorf("site, submission %d: got %d, want 303", i, response.StatusCode)
		}
	}
	sites, err := w.Backend.Store.Sites(t.Context(), domain.Reach{OrgID: w.mill.ID}, 50, "")
	if err != nil || len(sites.Data) != 2 {
		t.Errorf("got %d sites, %v, want Mill and one Far", len(sites.Data), err)
	}
}
