package portal_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/html"

	"hubcloud/domain"
	"hubcloud/httpapi/portal"
	"hubcloud/httpapi/ratelimit"
)

const (
	orgOne = "01940000-0000-7000-8000-000000000001"
	orgTwo = "01940000-0000-7000-8000-000000000002"
	public = "http://localhost:8080"
)

var day = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// world is what the portal is made for, in memory: people, sessions, links and mails. What else it
// is asked for a test lays over it.
type world struct {
	portal.Directory
	portal.ReadModels

	mu       sync.Mutex
	now      time.Time
	people   []domain.MemberAccess
	accounts map[string]bool
	made     time.Time // when the accounts were made
	links    map[string]domain.SignInLink
	sessions map[string]domain.PortalSession
	mails    []string        // "address link"
	did      []string        // what the directory was asked to do
	err      error           // what it answers
	sent     map[string]bool // the forms that were sent
	crowd    int             // how many there are of everything beside the first
	count    int
	forms    int // how many were sent
	allowed  *ratelimit.Limiter[string]
}

func newWorld() *world {
	return &world{
		now: day, accounts: map[string]bool{}, links: map[string]domain.SignInLink{},
		sent: map[string]bool{}, sessions: map[string]domain.PortalSession{},
		people: []domain.MemberAccess{
			{
				OrgID:    orgOne,
				OrgName:  "Mill",
				MemberID: "olga",
				Email:    "olga@example.org",
				Role:     domain.RoleOwner,
			},
			{
				OrgID:    orgOne,
				OrgName:  "Mill",
				MemberID: "max",
				Email:    "max@example.org",
				Role:     domain.RoleMember,
			},
			{
				OrgID:    orgTwo,
				OrgName:  "Quay",
				MemberID: "olga2",
				Email:    "olga@example.org",
				Role:     domain.RoleMember,
			},
		},
	}
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *world) Memberships(email string) []domain.MemberAccess {
	return slices.DeleteFunc(slices.Clone(w.people), func(m domain.MemberAccess) bool {
		return domain.NormalizeEmail(m.Email) != domain.NormalizeEmail(email)
	})
}

func (w *world) Membership(org, email string) (domain.MemberAccess, bool) {
	for _, m := range w.Memberships(email) {
		if m.OrgID == org {
			return m, true
		}
	}
	return domain.MemberAccess{}, false
}

func (w *world) token(kind string) string {
	w.count++
	return fmt.Sprint(kind, w.count)
}

func (w *world) NewLink(_ context.Context, link domain.SignInLink) (string, error) {
	token := w.token("link")
	w.links[token] = link
	return token, nil
}

func (w *world) Link(_ context.Context, token string, now time.Time) (domain.SignInLink, error) {
	if link, ok := w.links[token]; ok && now.Before(link.ExpiresAt) {
		return link, nil
	}
	return domain.SignInLink{}, domain.ErrSignInLink()
}

func (w *world) UseLink(
	ctx context.Context, token string, now time.Time,
) (domain.SignInLink, error) {
	link, err := w.Link(ctx, token, now)
	delete(w.links, token)
	return link, err
}

func (w *world) Begin(_ context.Context, session domain.PortalSession) (string, error) {
	token := w.token("session")
	w.sessions[token] = session
	return token, nil
}

func (w *world) Session(
	_ context.Context, token string, now time.Time,
) (domain.PortalSession, error) {
	if session, ok := w.sessions[token]; ok && now.Before(session.ExpiresAt) {
		return session, nil
	}
	return domain.PortalSession{}, domain.ErrNotSignedIn()
}

func (w *world) End(_ context.Context, token string) error {
	delete(w.sessions, token)
	return nil
}

func (w *world) ClaimForm(_ context.Context, token, mark string) (bool, error) {
	first := !w.sent[token+mark]
	w.sent[token+mark] = true
	return first, nil
}

func (w *world) ReleaseForm(_ context.Context, token, mark string) error {
	delete(w.sent, token+mark)
	return nil
}

func (w *world) Allow(
	_ context.Context, name string, burst, perHour int, now time.Time,
) (time.Duration, error) {
	if w.allowed == nil {
		w.allowed = ratelimit.New[string](float64(perHour)/3600, burst, day)
	}
	return w.allowed.Take(name, now).Next, nil
}

func (w *world) Ended(string) (<-chan struct{}, func()) { return nil, func() {} }

func (w *world) SendSignIn(_ context.Context, email, link string, _ time.Time) error {
	w.mails = append(w.mails, email+" "+link)
	return nil
}

func (w *world) Account(_ context.Context, email string) (domain.AccountState, error) {
	for stored := range w.accounts {
		if domain.NormalizeEmail(stored) == domain.NormalizeEmail(email) {
			return domain.AccountState{
				ID:        "account of " + stored,
				Email:     stored,
				CreatedAt: w.made,
			}, nil
		}
	}
	return domain.AccountState{}, nil
}

func (w *world) EnsureAccount(
	ctx context.Context, _ domain.Origin, email string,
) (domain.AccountState, error) {
	account, err := w.Account(ctx, email)
	if err != nil || account.Exists() {
		return account, err
	}
	w.accounts[email] = true
	return w.Account(ctx, email)
}

func (w *world) does(o domain.Origin, what ...any) error {
	w.did = append(w.did, strings.TrimSpace(o.Actor.Kind+" "+o.Actor.ID+": "+fmt.Sprintln(what...)))
	return w.err
}

func (w *world) CreateOrg(
	_ context.Context, o domain.Origin, name, owner string,
) (string, string, error) {
	return orgTwo, "owner", w.does(o, "create organization", name, owner)
}

func (w *world) Invite(
	_ context.Context, o domain.Origin, _, email string, role domain.Role,
) (domain.Invitation, error) {
	return domain.Invitation{}, w.does(o, "invite", email, role)
}

func (w *world) RevokeInvitation(_ context.Context, o domain.Origin, _, invitation string) error {
	return w.does(o, "withdraw", invitation)
}

func (w *world) ChangeRole(
	_ context.Context, o domain.Origin, _, member string, role domain.Role,
) (domain.Member, error) {
	return domain.Member{}, w.does(o, "make", member, role)
}

func (w *world) RemoveMember(_ context.Context, o domain.Origin, _, member string) error {
	return w.does(o, "remove", member)
}

func (w *world) CreateKey(
	_ context.Context, o domain.Origin, _, label string, scopes []domain.Scope,
) (string, string, error) {
	return "keyid", "hc_dev_keyid-and-secret", w.does(o, "create key", label, scopes)
}

func (w *world) RevokeKey(_ context.Context, o domain.Origin, key, _ string) error {
	return w.does(o, "revoke key", key)
}

func (w *world) CreateSite(
	_ context.Context, o domain.Origin, _, name string,
) (domain.SiteState, error) {
	return domain.SiteState{}, w.does(o, "create site", name)
}

func (w *world) AddHub(
	_ context.Context, o domain.Origin, add domain.AddHub,
) (domain.HubState, error) {
	return domain.HubState{}, w.does(o, "add", add.HubID, "at", add.SiteID)
}

// some gives the page of a list after an item, as read models do.
func some[T any](all []T, limit int, after string, id func(T) string) (domain.Page[T], error) {
	if after != "" {
		i := slices.IndexFunc(all, func(item T) bool { return id(item) == after })
		if i < 0 {
			return domain.Page[T]{}, domain.Errorf(
				domain.CodeInvalidRequest, "starting_after: there is no such one",
			)
		}
		all = all[i+1:]
	}
	return domain.Page[T]{Data: all[:min(limit, len(all))], HasMore: len(all) > limit}, nil
}

func (w *world) FindMembers(
	_ context.Context, _, text string, limit int, after string,
) (domain.Page[domain.Member], error) {
	all := []domain.Member{
		{ID: "olga", Email: "olga@example.org", Role: domain.RoleOwner, JoinedAt: day},
		{
			ID:       "max",
			Email:    "<script>alert(1)</script>@example.org",
			Role:     domain.RoleMember,
			JoinedAt: day,
		},
	}
	for i := range w.crowd {
		all = append(
			all,
			domain.Member{
				ID:       fmt.Sprint("m", i),
				Email:    fmt.Sprintf("m%d@example.org", i),
				Role:     domain.RoleMember,
				JoinedAt: day,
			},
		)
	}
	all = slices.DeleteFunc(
		all, func(m domain.Member) bool { return !strings.Contains(m.Email, text) },
	)
	return some(all, limit, after, func(m domain.Member) string { return m.ID })
}

func (w *world) Member(ctx context.Context, _, id string) (domain.Member, error) {
	all, err := w.FindMembers(ctx, "", "", 1000, "")
	for _, m := range all.Data {
		if m.ID == id {
			return m, err
		}
	}
	return domain.Member{}, domain.ErrMemberNotFound()
}

func (w *world) Invitations(
	_ context.Context, _ string, limit int, after string, _ time.Time,
) (domain.Page[domain.Invitation], error) {
	var all []domain.Invitation
	for i := range w.crowd {
		all = append(
			all,
			domain.Invitation{
				ID:        fmt.Sprint("i", i),
				Email:     fmt.Sprintf("i%d@example.org", i),
				Role:      domain.RoleAdmin,
				CreatedAt: day,
				ExpiresAt: day,
			},
		)
	}
	return some(all, limit, after, func(i domain.Invitation) string { return i.ID })
}

func (w *world) Keys(
	_ context.Context, _ string, limit int, after string,
) (domain.Page[domain.KeyView], error) {
	all := []domain.KeyView{
		{
			ID:        "keyid",
			Label:     "A\u202Egro",
			Scopes:    []domain.Scope{domain.ScopeHubsRead},
			CreatedAt: day,
		},
	}
	for i := range w.crowd {
		all = append(
			all,
			domain.KeyView{
				ID:        fmt.Sprint("k", i),
				Label:     fmt.Sprint("the key ", i),
				CreatedAt: day,
			},
		)
	}
	return some(all, limit, after, func(k domain.KeyView) string { return k.ID })
}

func (w *world) Key(ctx context.Context, _, id string) (domain.KeyView, error) {
	all, err := w.Keys(ctx, "", 1000, "")
	for _, k := range all.Data {
		if k.ID == id {
			return k, err
		}
	}
	return domain.KeyView{}, domain.ErrKeyNotFound()
}

func (w *world) LastUsed(context.Context, []string) (map[string]time.Time, error) {
	return map[string]time.Time{"keyid": day.Add(-3 * time.Hour)}, nil
}

func (w *world) Sites(
	_ context.Context, _ string, limit int, after string,
) (domain.Page[domain.Site], error) {
	all := []domain.Site{{ID: "site", Name: "Mill", HubCount: 1}}
	for i := range w.crowd {
		all = append(all, domain.Site{ID: fmt.Sprint("s", i), Name: fmt.Sprint("the site ", i)})
	}
	return some(all, limit, after, func(s domain.Site) string { return s.ID })
}

func (w *world) Site(_ context.Context, _, id string) (domain.Site, error) {
	if id == "far" {
		return domain.Site{ID: "far", Name: "A site far down"}, nil
	}
	return domain.Site{}, domain.ErrSiteNotFound()
}

func (w *world) FindHubs(
	_ context.Context, _, site, text string, limit int, after string,
) (domain.Page[domain.Hub], error) {
	all := []domain.Hub{
		{ID: "hub-7k2m-q4xd-93ta", SiteID: "site", Status: domain.HubOnline, Since: day},
	}
	for i := range w.crowd {
		all = append(
			all,
			domain.Hub{
				ID:     domain.HubID(fmt.Sprintf("hub-0000-0000-%04d", i)),
				SiteID: "far",
				Status: domain.HubOffline,
				Since:  day,
			},
		)
	}
	all = slices.DeleteFunc(all, func(h domain.Hub) bool {
		return site != "" && h.SiteID != site || !strings.Contains(string(h.ID), text)
	})
	return some(all, limit, after, func(h domain.Hub) string { return string(h.ID) })
}

func (w *world) Hubs(
	context.Context, string, *string, int, string,
) (domain.Page[domain.Hub], error) {
	return domain.Page[domain.Hub]{
		Data: []domain.Hub{
			{ID: "hub-7k2m-q4xd-93ta", SiteID: "site", Status: domain.HubOnline, Since: day},
		},
	}, nil
}

func (w *world) History(
	_ context.Context, hub domain.HubID, since time.Time, limit int,
) ([]domain.CommandDone, error) {
	if !since.Equal(w.clock().Add(-24*time.Hour)) || limit < 1 {
		return nil, fmt.Errorf("asked for %d since %v", limit, since)
	}
	done := domain.CommandDone{
		ID: "1", OrgID: orgOne, HubID: hub, DeviceID: 3, Key: "mode",
		Value: json.RawMessage(`"<b>eco</b>"`), At: day,
		Actor: domain.Actor{Kind: domain.ActorMember, ID: "olga"}, Outcome: "accepted",
	}
	refused, foreign := done, done
	refused.ID, refused.Key, refused.At, refused.Outcome, refused.Message = "2", "lock", day.Add(
		time.Minute,
	), "hub_timeout", "it is silent"
	refused.Actor = domain.Actor{Kind: domain.ActorKey, ID: "another"}
	foreign.ID, foreign.OrgID, foreign.Key = "3", orgTwo, "foreign"
	return []domain.CommandDone{done, refused, foreign}, nil
}

func (w *world) Activity(
	context.Context, string, int, uint64,
) (domain.Page[domain.Activity], error) {
	byOlga := domain.Actor{Kind: domain.ActorMember, ID: "olga"}
	return domain.Page[domain.Activity]{HasMore: true, Data: []domain.Activity{
		{
			Sequence:    9,
			Type:        domain.TypeMemberRoleChanged,
			Actor:       domain.Actor{Kind: domain.ActorMember, ID: "olga"},
			ActorName:   "olga@example.org",
			SubjectID:   "max",
			SubjectName: "max@example.org",
			Detail:      "admin",
			At:          day,
		},
		{
			Sequence:  7,
			Type:      domain.TypeMemberRemoved,
			Actor:     domain.Actor{Kind: domain.ActorMember, ID: "tom"},
			ActorName: "tom@example.org",
			SubjectID: "tom",
			At:        day,
		},
		{
			Sequence:    6,
			Type:        domain.TypeDeviceLabeled,
			Actor:       byOlga,
			SubjectID:   "2",
			SubjectName: "Lobby",
			Hub:         hubHere,
			Detail:      "Hall, Attic",
			At:          day,
		},
		{
			Sequence:  6,
			Type:      domain.TypeDeviceForgotten,
			Actor:     byOlga,
			SubjectID: "3",
			Hub:       hubHere,
			At:        day,
		},
		{
			Sequence:    6,
			Type:        domain.TypeSiteRenamed,
			Actor:       byOlga,
			SubjectID:   "site",
			SubjectName: "Mill",
			Detail:      "Mill",
			At:          day,
		},
		{
			Sequence:    6,
			Type:        domain.TypeSiteRenamed,
			Actor:       byOlga,
			SubjectID:   "site",
			SubjectName: "Mill",
			Detail:      "Mall",
			At:          day,
		},
		{
			Sequence:    6,
			Type:        domain.TypeHubRenamed,
			Actor:       byOlga,
			SubjectID:   string(hubHere),
			SubjectName: "Lobby",
			Detail:      "Lobby",
			At:          day,
		},
		{
			Sequence:    6,
			Type:        domain.TypeHubRenamed,
			Actor:       byOlga,
			SubjectID:   string(hubElse),
			SubjectName: "Lobby",
			At:          day,
		},
		{
			Sequence:    6,
			Type:        domain.TypeInvitationRevoked,
			Actor:       byOlga,
			SubjectID:   "invitation",
			SubjectName: "ben@example.org",
			At:          day,
		},
		{
			Sequence:  5,
			Type:      "something.new",
			Actor:     domain.Actor{Kind: domain.ActorKey, ID: "keyid"},
			SubjectID: "x",
			At:        day,
		},
	}}, nil
}

// browser keeps cookies, and sends forms as a page of the portal does.
type browser struct {
	t       *testing.T
	world   *world
	pages   http.Handler
	cookies map[string]string
}

// visit opens a browser on a portal over the world.
func (w *world) visit(t *testing.T, change func(*portal.Config)) *browser {
	w.allowed = nil // a portal of its own
	cfg := portal.Config{
		People: w, SignIn: w, ReadModels: w, Directory: w, KeyUse: w, Mails: w, History: w,
		PublicURL: public, Environment: domain.EnvironmentDev, Now: w.clock,
	}
	if change != nil {
		change(&cfg)
	}
	return &browser{t: t, world: w, pages: handler(cfg), cookies: map[string]string{}}
}

// other is another browser on the same portal.
func (b *browser) other() *browser {
	return &browser{t: b.t, world: b.world, pages: b.pages, cookies: map[string]string{}}
}

func (b *browser) do(
	method, path string, form url.Values, header http.Header,
) (*http.Response, string) {
	b.t.Helper()
	r := httptest.NewRequest(method, public+path, strings.NewReader(form.Encode()))
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for name, values := range header {
		r.Header[name] = values
	}
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	w := httptest.NewRecorder()
	b.pages.ServeHTTP(w, r)
	response := w.Result()
	for _, cookie := range response.Cookies() {
		if !cookie.HttpOnly || cookie.Path != "/" || cookie.SameSite != http.SameSiteLaxMode {
			b.t.Errorf("a cookie %v", cookie)
		}
		b.cookies[cookie.Name] = cookie.Value
		if cookie.MaxAge < 0 {
			delete(b.cookies, cookie.Name)
		}
	}
	return response, read(b.t, response)
}

// get opens a page.
func (b *browser) get(path string, status int) string {
	b.t.Helper()
	response, page := b.do("GET", path, nil, nil)
	if response.StatusCode != status {
		b.t.Errorf("GET %s: %d: %s", path, response.StatusCode, page)
	}
	return page
}

// post sends a form with the session's token, and gives where the answer leads.
func (b *browser) post(path string, status int, fields ...string) (to, page string) {
	b.t.Helper()
	b.world.forms++
	form := url.Values{
		"form_token": {b.session().FormToken},
		"once":       {fmt.Sprint("form ", b.world.forms)},
	}
	for i := 0; i < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	response, page := b.do("POST", path, form, nil)
	if response.StatusCode != status {
		b.t.Errorf("POST %s: %d: %s", path, response.StatusCode, page)
	}
	if location := response.Header.Get("Location"); location != "" {
		base, err := url.Parse(public + path)
		if err != nil {
			b.t.Fatal(err)
		}
		where, err := base.Parse(location)
		if err != nil {
			b.t.Fatal(err)
		}
		to = where.RequestURI()
	}
	return to, page
}

func (b *browser) session() domain.PortalSession {
	return b.world.sessions[b.cookies["hubcloud_session"]]
}

// signIn signs in by a mail.
func (b *browser) signIn(email string) *browser {
	b.t.Helper()
	b.post("/portal/sign-in", 200, "email", email)
	_, link, _ := strings.Cut(b.world.mails[len(b.world.mails)-1], " ")
	b.post(strings.TrimPrefix(link, public), 303)
	if b.session().Email != email {
		b.t.Fatalf("signed in as %q", b.session().Email)
	}
	return b
}

// holdsPromises checks what every page of the portal holds to.
func holdsPromises(t *testing.T, page string) {
	t.Helper()
	document, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	count, ids := map[string]int{}, map[string]bool{}
	var named []string
	for node := range document.Descendants() {
		if node.Type != html.ElementNode {
			continue
		}
		count[node.Data]++
		attributes := map[string]string{}
		for _, a := range node.Attr {
			attributes[a.Key] = a.Val
			if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
				t.Errorf("<%s> has %s", node.Data, a.Key)
			}
			if a.Key == "aria-labelledby" || a.Key == "aria-describedby" || a.Key == "for" {
				named = append(named, a.Val)
			}
		}
		if id, ok := attributes["id"]; ok {
			if ids[id] {
				t.Errorf("two have the id %q", id)
			}
			ids[id] = true
		}
		for _, name := range []string{"src", "href", "action"} {
			if address := attributes[name]; strings.Contains(address, "//") ||
				strings.HasPrefix(address, "/") {
				t.Errorf("<%s %s=%q>", node.Data, name, address)
			}
		}
		if node.Data == "form" && strings.EqualFold(attributes["method"], "post") &&
			strings.Contains(page, "Sign out") &&
			!strings.Contains(formOf(t, node), "form_token") {
			t.Error("a form without a token")
		}
	}
	for _, id := range named {
		if !ids[id] {
			t.Errorf("nothing has the id %q", id)
		}
	}
	if count["h1"] != 1 || count["main"] != 1 || count["title"] != 1 || count["style"] != 0 ||
		count["script"] != 0 {
		t.Errorf("the page has %v", count)
	}
}

func formOf(t *testing.T, node *html.Node) string {
	t.Helper()
	var text strings.Builder
	if err := html.Render(&text, node); err != nil {
		t.Fatal(err)
	}
	return text.String()
}
