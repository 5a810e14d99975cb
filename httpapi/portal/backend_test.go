package portal_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

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

// backend implements the portal's interfaces in memory: people, sign-in, read models and directory.
// A test embeds or overrides what it needs beyond that.
type backend struct {
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
	extra    int             // how many there are of everything beside the first
	count    int
	forms    int // how many were sent
	allowed  *ratelimit.Limiter[string]
}

func newBackend() *backend {
	return &backend{
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

func (w *backend) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *backend) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *backend) Memberships(email string) []domain.MemberAccess {
	return slices.DeleteFunc(slices.Clone(w.people), func(m domain.MemberAccess) bool {
		return domain.NormalizeEmail(m.Email) != domain.NormalizeEmail(email)
	})
}

func (w *backend) Membership(org, email string) (domain.MemberAccess, bool) {
	for _, m := range w.Memberships(email) {
		if m.OrgID == org {
			return m, true
		}
	}
	return domain.MemberAccess{}, false
}

func (w *backend) token(kind string) string {
	w.count++
	return fmt.Sprint(kind, w.count)
}

func (w *backend) NewLink(_ context.Context, link domain.SignInLink) (string, error) {
	token := w.token("link")
	w.links[token] = link
	return token, nil
}

func (w *backend) Link(_ context.Context, token string, now time.Time) (domain.SignInLink, error) {
	if link, ok := w.links[token]; ok && now.Before(link.ExpiresAt) {
		return link, nil
	}
	return domain.SignInLink{}, domain.ErrSignInLink()
}

func (w *backend) UseLink(
	ctx context.Context, token string, now time.Time,
) (domain.SignInLink, error) {
	link, err := w.Link(ctx, token, now)
	delete(w.links, token)
	return link, err
}

func (w *backend) Begin(_ context.Context, session domain.PortalSession) (string, error) {
	token := w.token("session")
	w.sessions[token] = session
	return token, nil
}

func (w *backend) Session(
	_ context.Context, token string, now time.Time,
) (domain.PortalSession, error) {
	if session, ok := w.sessions[token]; ok && now.Before(session.ExpiresAt) {
		return session, nil
	}
	return domain.PortalSession{}, domain.ErrNotSignedIn()
}

func (w *backend) End(_ context.Context, token string) error {
	delete(w.sessions, token)
	return nil
}

func (w *backend) ClaimForm(_ context.Context, token, mark string) (bool, error) {
	first := !w.sent[token+mark]
	w.sent[token+mark] = true
	return first, nil
}

func (w *backend) ReleaseForm(_ context.Context, token, mark string) error {
	delete(w.sent, token+mark)
	return nil
}

func (w *backend) Allow(
	_ context.Context, name string, burst, perHour int, now time.Time,
) (time.Duration, error) {
	if w.allowed == nil {
		w.allowed = ratelimit.New[string](float64(perHour)/3600, burst, day)
	}
	return w.allowed.Take(name, now).Next, nil
}

func (w *backend) Ended(string) (<-chan struct{}, func()) { return nil, func() {} }

func (w *backend) SendSignIn(_ context.Context, email, link string, _ time.Time) error {
	w.mails = append(w.mails, email+" "+link)
	return nil
}

func (w *backend) Account(_ context.Context, email string) (domain.AccountState, error) {
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

func (w *backend) EnsureAccount(
	ctx context.Context, _ domain.Origin, email string,
) (domain.AccountState, error) {
	account, err := w.Account(ctx, email)
	if err != nil || account.Exists() {
		return account, err
	}
	w.accounts[email] = true
	return w.Account(ctx, email)
}

func (w *backend) does(o domain.Origin, what ...any) error {
	w.did = append(w.did, strings.TrimSpace(o.Actor.Kind+" "+o.Actor.ID+": "+fmt.Sprintln(what...)))
	return w.err
}

func (w *backend) CreateOrg(
	_ context.Context, o domain.Origin, name, owner string,
) (string, string, error) {
	return orgTwo, "owner", w.does(o, "create organization", name, owner)
}

func (w *backend) Invite(
	_ context.Context, o domain.Origin, _, email string, role domain.Role,
) (domain.Invitation, error) {
	return domain.Invitation{}, w.does(o, "invite", email, role)
}

func (w *backend) RevokeInvitation(_ context.Context, o domain.Origin, _, invitation string) error {
	return w.does(o, "withdraw", invitation)
}

func (w *backend) ChangeRole(
	_ context.Context, o domain.Origin, _, member string, role domain.Role,
) (domain.Member, error) {
	return domain.Member{}, w.does(o, "make", member, role)
}

func (w *backend) RemoveMember(_ context.Context, o domain.Origin, _, member string) error {
	return w.does(o, "remove", member)
}

func (w *backend) CreateKey(
	_ context.Context, o domain.Origin, _, label string, scopes []domain.Scope,
) (string, string, error) {
	return "keyid", "hc_dev_keyid-and-secret", w.does(o, "create key", label, scopes)
}

func (w *backend) RevokeKey(_ context.Context, o domain.Origin, key, _ string) error {
	return w.does(o, "revoke key", key)
}

func (w *backend) CreateSite(
	_ context.Context, o domain.Origin, _, name string,
) (domain.SiteState, error) {
	return domain.SiteState{}, w.does(o, "create site", name)
}

func (w *backend) AddHub(
	_ context.Context, o domain.Origin, add domain.AddHub,
) (domain.HubState, error) {
	return domain.HubState{}, w.does(o, "add", add.HubID, "at", add.SiteID)
}

// pageOf returns the page of a list after an item, as read models do.
func pageOf[T any](all []T, limit int, after string, id func(T) string) (domain.Page[T], error) {
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

func (w *backend) FindMembers(
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
	for i := range w.extra {
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
	return pageOf(all, limit, after, func(m domain.Member) string { return m.ID })
}

func (w *backend) Member(ctx context.Context, _, id string) (domain.Member, error) {
	all, err := w.FindMembers(ctx, "", "", 1000, "")
	for _, m := range all.Data {
		if m.ID == id {
			return m, err
		}
	}
	return domain.Member{}, domain.ErrMemberNotFound()
}

func (w *backend) Invitations(
	_ context.Context, _ string, limit int, after string, _ time.Time,
) (domain.Page[domain.Invitation], error) {
	var all []domain.Invitation
	for i := range w.extra {
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
	return pageOf(all, limit, after, func(i domain.Invitation) string { return i.ID })
}

func (w *backend) Keys(
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
	for i := range w.extra {
		all = append(
			all,
			domain.KeyView{
				ID:        fmt.Sprint("k", i),
				Label:     fmt.Sprint("the key ", i),
				CreatedAt: day,
			},
		)
	}
	return pageOf(all, limit, after, func(k domain.KeyView) string { return k.ID })
}

func (w *backend) Key(ctx context.Context, _, id string) (domain.KeyView, error) {
	all, err := w.Keys(ctx, "", 1000, "")
	for _, k := range all.Data {
		if k.ID == id {
			return k, err
		}
	}
	return domain.KeyView{}, domain.ErrKeyNotFound()
}

func (w *backend) LastUsed(context.Context, []string) (map[string]time.Time, error) {
	return map[string]time.Time{"keyid": day.Add(-3 * time.Hour)}, nil
}

func (w *backend) Sites(
	_ context.Context, _ string, limit int, after string,
) (domain.Page[domain.Site], error) {
	all := []domain.Site{{ID: "site", Name: "Mill", HubCount: 1}}
	for i := range w.extra {
		all = append(all, domain.Site{ID: fmt.Sprint("s", i), Name: fmt.Sprint("the site ", i)})
	}
	return pageOf(all, limit, after, func(s domain.Site) string { return s.ID })
}

func (w *backend) Site(_ context.Context, _, id string) (domain.Site, error) {
	if id == "far" {
		return domain.Site{ID: "far", Name: "A site far down"}, nil
	}
	return domain.Site{}, domain.ErrSiteNotFound()
}

func (w *backend) FindHubs(
	_ context.Context, _, site, text string, limit int, after string,
) (domain.Page[domain.Hub], error) {
	all := []domain.Hub{
		{ID: "hub-7k2m-q4xd-93ta", SiteID: "site", Status: domain.HubOnline, Since: day},
	}
	for i := range w.extra {
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
	return pageOf(all, limit, after, func(h domain.Hub) string { return string(h.ID) })
}

func (w *backend) Hubs(
	context.Context, string, *string, int, string,
) (domain.Page[domain.Hub], error) {
	return domain.Page[domain.Hub]{
		Data: []domain.Hub{
			{ID: "hub-7k2m-q4xd-93ta", SiteID: "site", Status: domain.HubOnline, Since: day},
		},
	}, nil
}

func (w *backend) History(
	_ context.Context, hub domain.HubID, since time.Time, limit int,
) ([]domain.CommandRecord, error) {
	if !since.Equal(w.clock().Add(-24*time.Hour)) || limit < 1 {
		return nil, fmt.Errorf("asked for %d since %v", limit, since)
	}
	done := domain.CommandRecord{
		ID: "1", OrgID: orgOne, HubID: hub, DeviceID: 3, Key: "mode",
		Value: json.RawMessage(`"<b>eco</b>"`), At: day,
		Actor: domain.Actor{Kind: domain.ActorMember, ID: "olga"}, Outcome: "accepted",
	}
	rejected, foreign := done, done
	rejected.ID, rejected.Key, rejected.At, rejected.Outcome, rejected.Message = "2", "lock", day.Add(
		time.Minute,
	), "hub_timeout", "it is silent"
	rejected.Actor = domain.Actor{Kind: domain.ActorKey, ID: "another"}
	foreign.ID, foreign.OrgID, foreign.Key = "3", orgTwo, "foreign"
	return []domain.CommandRecord{done, rejected, foreign}, nil
}

func (w *backend) Activity(
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
			Hub:         ownHub,
			Detail:      "Hall, Attic",
			At:          day,
		},
		{
			Sequence:  6,
			Type:      domain.TypeDeviceForgotten,
			Actor:     byOlga,
			SubjectID: "3",
			Hub:       ownHub,
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
			SubjectID:   string(ownHub),
			SubjectName: "Lobby",
			Detail:      "Lobby",
			At:          day,
		},
		{
			Sequence:    6,
			Type:        domain.TypeHubRenamed,
			Actor:       byOlga,
			SubjectID:   string(foreignHub),
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
