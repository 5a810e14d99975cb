package portal_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/portal"
	"hubcloud/projections/projectionstest"
	"hubcloud/streams/installationtest"
	"hubcloud/streams/signin"
	"hubcloud/streams/streamstest"
)

// Constants in requests and pages stand for the ids that a backend has in their place.
const (
	orgOne = "01940000-0000-7000-8000-000000000001"
	orgTwo = "01940000-0000-7000-8000-000000000002"
	site   = "01940000-0000-7000-8000-00000000000a"
	ownHub = domain.HubID("hub-7k2m-q4xd-93ta")
	public = "http://localhost:8080"

	olga = "olga@example.org"
	max  = "max@example.org"
)

// backend is what a portal runs on: the package's shared directory, read models and sessions, with
// two organizations of the test's own. Olga owns both; Max is a member of the first, which has a
// site and the hub ownHub. Fakes are the clock, the mails, the commands of hubs, the use of keys,
// and errors of the directory that it does not return on request.
type backend struct {
	*projectionstest.Backend
	*signin.Store
	portal.Directory

	number     int64 // of the backend among those of all tests
	mill, quay *projectionstest.Organization
	hub        domain.HubID
	// toReal replaces constants by ids, and the domain of addresses by one of the test's own;
	// toConstants does the reverse.
	toReal, toConstants *strings.Replacer

	mu    sync.Mutex
	ahead time.Duration // of the real clock
	mails []string      // "address link"
	forms int           // how many were sent
	err   error         // what managing actions answer
	// retention is the portal's. Zero means 24 hours.
	retention time.Duration
}

var backends atomic.Int64

func newBackend(t *testing.T) *backend {
	t.Helper()
	shared := projectionstest.Shared()
	number := backends.Add(1)
	label := fmt.Sprintf("t%d.", number)
	address := func(name string) string { return name + "@" + label + "example.org" }
	w := &backend{
		number: number, Backend: shared, Directory: shared.Directory,
		Store: signin.New(shared.Conns.Cloud, shared.Buckets.SignIn, nil),
		mill:  shared.NewOrganization(t, "<b>Mill</b>", address("olga")),
		quay:  shared.NewOrganization(t, "Quay", address("olga")),
	}
	w.hub = w.mill.NewHub(t)
	member := w.mill.NewMember(t, address("max"), domain.RoleMember)
	pairs := []string{
		orgOne, w.mill.ID, orgTwo, w.quay.ID, site, w.mill.SiteID, string(ownHub), string(w.hub),
		"members/olga", "members/" + w.mill.Owner.ID, "members/max", "members/" + member.ID,
	}
	w.toReal = strings.NewReplacer(append(pairs,
		"@example.org", "@"+label+"example.org", "@Example.org", "@"+label+"Example.org",
	)...)
	for i := 0; i < len(pairs); i += 2 {
		pairs[i], pairs[i+1] = pairs[i+1], pairs[i]
	}
	w.toConstants = strings.NewReplacer(append(pairs, "@"+label, "@")...)
	return w
}

// changes returns the sequence of the directory's last change of the first organization, its
// members, sites, hubs and keys.
func (w *backend) changes(t *testing.T) uint64 {
	t.Helper()
	page, err := w.Backend.Store.Activity(t.Context(), w.mill.ID, 1, 0)
	streamstest.Must(t, err)
	return page.Data[0].Sequence
}

// lastChange returns the newest change of an organization as "actor: type subject detail".
func (w *backend) lastChange(t *testing.T, org *projectionstest.Organization) string {
	t.Helper()
	page, err := w.Backend.Store.Activity(t.Context(), org.ID, 1, 0)
	streamstest.Must(t, err)
	a := page.Data[0]
	subject := cmp.Or(a.SubjectName, a.SubjectID)
	text := fmt.Sprintf("%s: %s %s %s", a.ActorName, a.Type, subject, a.Detail)
	return strings.TrimSpace(w.toConstants.Replace(text))
}

// wantChange checks the newest change of the first organization.
func (w *backend) wantChange(t *testing.T, want string) {
	t.Helper()
	if got := w.lastChange(t, w.mill); got != want {
		t.Errorf("got change %q, want %q", got, want)
	}
}

// newSite adds the site Far to the first organization.
func (w *backend) newSite(t *testing.T) string {
	t.Helper()
	far, err := w.Backend.Directory.CreateSite(
		t.Context(), installationtest.Operator, w.mill.ID, "Far",
	)
	streamstest.Must(t, err)
	return far.ID
}

func (w *backend) newLink(t *testing.T, email string, atOnce bool) string {
	t.Helper()
	token, err := w.NewLink(t.Context(), domain.SignInLink{
		Email: w.toReal.Replace(email), AtOnce: atOnce, CreatedAt: w.clock(),
		ExpiresAt: w.clock().Add(time.Hour),
	})
	streamstest.Must(t, err)
	return token
}

// newAccount creates an account with exactly that address.
func (w *backend) newAccount(t *testing.T, email string) {
	t.Helper()
	_, err := w.EnsureAccount(t.Context(), installationtest.Operator, email)
	streamstest.Must(t, err)
}

func (w *backend) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.ahead)
}

func (w *backend) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ahead += d
}

func (w *backend) SendSignIn(_ context.Context, email, link string, _ time.Time) error {
	w.mails = append(w.mails, w.toConstants.Replace(email)+" "+link)
	return nil
}

func (w *backend) SendTest(_ context.Context, org domain.OrgState, member string) error {
	w.mails = append(w.mails, "test to "+member+" of "+org.Name)
	return nil
}

// mailedPath returns the path of the link in the last mail.
func (w *backend) mailedPath() string {
	_, link, _ := strings.Cut(w.mails[len(w.mails)-1], " ")
	return strings.TrimPrefix(link, public)
}

func (w *backend) LastUsed(_ context.Context, keys []string) (map[string]time.Time, error) {
	used := map[string]time.Time{}
	for _, key := range keys {
		used[key] = w.clock().Add(-3 * time.Hour)
	}
	return used, nil
}

func (w *backend) RemoveMember(ctx context.Context, o domain.Origin, org, member string) error {
	if w.err != nil {
		return w.err
	}
	return w.Directory.RemoveMember(ctx, o, org, member)
}

func (w *backend) CreateSite(
	ctx context.Context, o domain.Origin, org, name string,
) (domain.SiteState, error) {
	if w.err != nil {
		return domain.SiteState{}, w.err
	}
	return w.Directory.CreateSite(ctx, o, org, name)
}

// History returns three commands: of Olga, of a key, and of the hub's former organization.
func (w *backend) History(
	_ context.Context, hub domain.HubID, since time.Time, limit int,
) ([]domain.CommandRecord, error) {
	retention := cmp.Or(w.retention, 24*time.Hour)
	if age := w.clock().Sub(since); age < retention || age > retention+time.Hour || limit < 1 {
		return nil, fmt.Errorf(
			"history: got limit %d since %v, want some since %v ago", limit, since, retention,
		)
	}
	done := domain.CommandRecord{
		ID: "1", OrgID: w.mill.ID, HubID: hub, DeviceID: 3, Key: "mode",
		Value: json.RawMessage(`"<b>eco</b>"`), At: since.Add(time.Hour),
		Actor:   domain.Actor{Kind: domain.ActorMember, ID: w.mill.Owner.ID},
		Outcome: "accepted",
	}
	rejected, foreign := done, done
	rejected.ID, rejected.Key, rejected.At = "2", "lock", done.At.Add(time.Minute)
	rejected.Outcome, rejected.Message = "hub_timeout", "it is silent"
	rejected.Actor = domain.Actor{Kind: domain.ActorKey, ID: "another"}
	foreign.ID, foreign.OrgID, foreign.Key = "3", w.quay.ID, "foreign"
	return []domain.CommandRecord{done, rejected, foreign}, nil
}
