package directory_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/directory"
	"hubcloud/streams/installationtest"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

var byKey = domain.Origin{
	At:    origin.At,
	Actor: domain.Actor{Kind: domain.ActorKey, ID: "0123456789AB"},
}

// org returns an organization.
func (w *world) org(t *testing.T, id string) domain.OrgState {
	t.Helper()
	state, err := w.Org(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// accounts returns how many times an account was created for an address, and by whom.
func (w *world) accounts(t *testing.T, email string) (count int, by domain.Actor) {
	t.Helper()
	subject := streams.AccountSubject(domain.AccountKey(email))
	_, err := w.log.Load(t.Context(), subject, 0, func(_ uint64, e domain.Event) error {
		count, by = count+1, e.Actor
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return count, by
}

// invite invites a person into the first organization and returns the invitation and its token.
func (w *world) invite(t *testing.T, email string, role domain.Role) (domain.Invitation, string) {
	t.Helper()
	inv, err := w.Invite(t.Context(), origin, w.orgA, email, domain.Access(role))
	if err != nil {
		t.Fatal(err)
	}
	return inv, w.mailbox.Mail(inv.ID).Token
}

// join makes a new person a member of the first organization.
func (w *world) join(t *testing.T, email string, role domain.Role) string {
	t.Helper()
	_, token := w.invite(t, email, role)
	accepted, err := w.AcceptInvitation(t.Context(), origin, token)
	if err != nil {
		t.Fatal(err)
	}
	return accepted.MemberID
}

func TestRolesAndRemoval(t *testing.T) {
	t.Parallel()
	w := newWorld(t, streamstest.Start(t))
	owner := w.org(t, w.orgA).Members[0].ID
	ann := w.join(t, "ann@example.org", domain.RoleMember)
	w.waited()
	head, err := w.log.Head(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time nothing is stored, and the first is waited for again
		member, err := w.ChangeRole(t.Context(), byKey, w.orgA, ann, domain.RoleAdmin)
		if err != nil ||
			member != (domain.Member{
				ID: ann, Email: "ann@example.org", Role: domain.RoleAdmin, JoinedAt: origin.At,
			}) {
			t.Errorf("got %+v, %v", member, err)
		}
	}
	if readable, _ := w.waited(); !slices.Equal(readable, []uint64{head + 1, head + 1}) {
		t.Errorf("waited for %v after %d", readable, head)
	}
	change := func(o domain.Origin, org, id string, role domain.Role, code domain.Code) {
		t.Helper()
		_, err := w.ChangeRole(t.Context(), o, org, id, role)
		wantCode(t, err, code)
	}
	change(byKey, w.orgA, owner, domain.RoleAdmin, domain.CodeForbidden)
	wantCode(t, w.RemoveMember(t.Context(), byKey, w.orgA, owner), domain.CodeForbidden)
	for _, org := range []string{w.orgB, "", ">", w.sitesA[0]} {
		change(byKey, org, ann, domain.RoleMember, domain.CodeNotFound)
		wantCode(t, w.RemoveMember(t.Context(), byKey, org, ann), domain.CodeNotFound)
	}
	for _, id := range []string{"", "*", w.orgA} {
		change(byKey, w.orgA, id, domain.RoleMember, domain.CodeNotFound)
		wantCode(t, w.RemoveMember(t.Context(), byKey, w.orgA, id), domain.CodeNotFound)
	}
	if now, err := w.log.Head(t.Context(), 0); err != nil || now != head+1 {
		t.Errorf("rejected changes were stored: head is %d, want %d", now, head+1)
	}
}

// race runs functions at the same time and returns their errors. It repeats calls that stored
// nothing because the broker was too busy, as clients do.
func race(fns ...func() error) []error {
	errs := make([]error, len(fns))
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i, fn := range fns {
		wg.Go(func() {
			<-start
			errs[i] = fn()
			for unchanged(errs[i]) { // the machine is busy
				errs[i] = fn()
			}
		})
	}
	close(start)
	wg.Wait()
	return errs
}

// unchanged reports whether a call failed for the moment, and stored nothing.
func unchanged(err error) bool {
	var known *domain.Error
	return errors.As(err, &known) && known.Code == domain.CodeServiceUnavailable &&
		!errors.Is(err, jsapi.ErrOutcomeUnknown)
}

// replicas returns two more services on the world's directory, each with its own connection.
func (w *world) replicas(t *testing.T, broker *streamstest.Broker) [2]*directory.Service {
	t.Helper()
	var both [2]*directory.Service
	for i := range both {
		both[i] = directory.NewService(open(t, broker.Connect(t)), directory.ServiceConfig{
			Mailer: w.mailbox, Presence: installationtest.Presence{Online: true},
		})
	}
	return both
}

// TestOwnerCreatesAnOrganization: organizations that people created had the service as their actor.
// The owner of several organizations has one account.
func TestOwnerCreatesAnOrganization(t *testing.T) {
	t.Parallel()
	w := newWorld(t, streamstest.Start(t))
	org, owner, err := w.CreateOrg(
		t.Context(), domain.Origin{At: origin.At, Actor: domain.Actor{Kind: domain.ActorMember}},
		"Mill", "ann@example.org",
	)
	if err != nil {
		t.Fatal(err)
	}
	subject := streams.OrgSubject(org)
	if _, err := w.log.Load(t.Context(), subject, 0, func(_ uint64, e domain.Event) error {
		if e.Actor != (domain.Actor{Kind: domain.ActorMember, ID: owner}) {
			t.Errorf("got %s by %+v, want the owner", e.Type, e.Actor)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if n, by := w.accounts(t, "ann@example.org"); n != 1 || by.ID != owner {
		t.Errorf("got %d accounts, by %+v", n, by)
	}
	// Both organizations of the world have the same owner.
	if n, _ := w.accounts(t, "Owner@Example.org"); n != 1 {
		t.Errorf("the owner of two organizations has %d accounts, want 1", n)
	}
}
