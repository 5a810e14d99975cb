package directory_test

import (
	"errors"
	"sync"
	"testing"

	"hubcloud/domain"
	"hubcloud/streams"
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
	streamstest.Must(t, err)
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
	streamstest.Must(t, err)
	return count, by
}

// invite invites a person into the first organization and returns the invitation and its token.
func (w *world) invite(t *testing.T, email string, role domain.Role) (domain.Invitation, string) {
	t.Helper()
	inv, err := w.Invite(t.Context(), origin, w.orgA, email, domain.Access(role))
	streamstest.Must(t, err)
	return inv, w.mailbox.Mail(inv.ID).Token
}

// join makes a new person a member of the first organization.
func (w *world) join(t *testing.T, email string, role domain.Role) string {
	t.Helper()
	_, token := w.invite(t, email, role)
	accepted, err := w.AcceptInvitation(t.Context(), origin, token)
	streamstest.Must(t, err)
	return accepted.MemberID
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

// TestOwnerCreatesAnOrganization: organizations that people created had the service as their actor.
// The owner of several organizations has one account.
func TestOwnerCreatesAnOrganization(t *testing.T) {
	t.Parallel()
	w := newWorld(t, streamstest.Start(t))
	org, owner, err := w.CreateOrg(
		t.Context(), domain.Origin{At: origin.At, Actor: domain.Actor{Kind: domain.ActorMember}},
		"Mill", "ann@example.org",
	)
	streamstest.Must(t, err)
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
