package projectionstest

import (
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/access"
	"hubcloud/projections/readmodel"
	"hubcloud/streams/directory"
	"hubcloud/streams/installationtest"
	"hubcloud/streams/streamstest"
)

// Backend is an installation with read models: what the API and the portal read and change.
type Backend struct {
	*installationtest.Installation
	// Store and Access are up to date when a command of Directory returns.
	Store  *readmodel.Store
	Access *access.Index
	// Mailbox has the mails of invitations.
	Mailbox *installationtest.Mailbox
	// Env appends to the directory and to the presence bucket directly.
	Env *Env
}

// StartBackend starts a Backend on a broker and a database of its own, which end with the test.
func StartBackend(t testing.TB) *Backend {
	t.Helper()
	e := New(t)
	b := &Backend{Env: e, Store: e.OpenStore(t), Mailbox: &installationtest.Mailbox{}}
	e.Project(t, b.Store)
	b.Access = e.RunIndex(t, b.Store)
	b.Installation = installationtest.Open(t, e.Conns, installationtest.Config{
		Directory: func(cfg *directory.ServiceConfig) {
			cfg.AwaitReadModels, cfg.AwaitReplicas = b.Store.WaitFor, b.Access.WaitFor
			cfg.Mailer = b.Mailbox
		},
	})
	return b
}

// Organization is an organization of a test in a Backend.
type Organization struct {
	*Backend
	ID, SiteID string
	// Owner is the organization's first member.
	Owner domain.Member
}

// NewOrganization creates an organization with a site.
func (b *Backend) NewOrganization(t testing.TB, name, owner string) *Organization {
	t.Helper()
	id, ownerID, err := b.Directory.CreateOrg(t.Context(), installationtest.Operator, name, owner)
	streamstest.Must(t, err)
	o := &Organization{Backend: b, ID: id, SiteID: b.newSite(t, id, "Mill")}
	if o.Owner, err = b.Store.Member(t.Context(), id, ownerID); err != nil {
		t.Fatal(err)
	}
	return o
}

func (b *Backend) newSite(t testing.TB, org, name string) string {
	t.Helper()
	site, err := b.Directory.CreateSite(t.Context(), installationtest.Operator, org, name)
	streamstest.Must(t, err)
	return site.ID
}

// NewHub adds a new hub to the organization's site.
func (o *Organization) NewHub(t testing.TB) domain.HubID {
	t.Helper()
	hub, _, err := o.Directory.GenerateHub(t.Context(), installationtest.Operator, "hub")
	streamstest.Must(t, err)
	if _, err := o.Directory.AddHub(t.Context(), installationtest.Operator, domain.AddHub{
		OrgID: o.ID, HubID: hub, SiteID: o.SiteID,
	}); err != nil {
		t.Fatal(err)
	}
	return hub
}

// NewMember makes a person a member, by an invitation.
func (o *Organization) NewMember(t testing.TB, email string, role domain.Role) domain.Member {
	t.Helper()
	invitation, err := o.Directory.Invite(t.Context(), installationtest.Operator, o.ID, email, domain.Access(role))
	streamstest.Must(t, err)
	token := o.Mailbox.Mail(invitation.ID).Token
	if _, err := o.Directory.AcceptInvitation(t.Context(), domain.Origin{}, token); err != nil {
		t.Fatal(err)
	}
	membership, ok := o.Access.Membership(o.ID, email)
	if !ok {
		t.Fatalf("%s is not a member of %s after accepting the invitation", email, o.ID)
	}
	var member domain.Member
	streamstest.EventuallyWithin(t, time.Minute, "the read models have "+email, func() bool {
		member, err = o.Store.Member(t.Context(), o.ID, membership.MemberID)
		return err == nil
	})
	return member
}

// NewKey creates an API key and returns its header field Authorization.
func (o *Organization) NewKey(t testing.TB, scopes ...domain.Scope) (id, authorization string) {
	t.Helper()
	id, key, err := o.Directory.CreateKey(
		t.Context(), installationtest.Operator, o.ID, "test", scopes, domain.KeyLimits{},
	)
	streamstest.Must(t, err)
	return id, "Bearer " + key
}
