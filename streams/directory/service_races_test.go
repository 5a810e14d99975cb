package directory_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

const rounds = 20

// TestInvitationIsAcceptedTwiceAtOnce opens a link twice at once on two replicas: both succeed,
// with one membership and one account.
func TestInvitationIsAcceptedTwiceAtOnce(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	w := newWorld(t, broker.Connect(t))
	both := w.replicas(t, broker)
	for round := range rounds {
		email := fmt.Sprintf("p%d@example.org", round)
		_, token := w.invite(t, email, domain.RoleMember)
		var accepted [2]domain.Acceptance
		accept := func(i int) func() error {
			return func() (err error) {
				accepted[i], err = both[i].AcceptInvitation(t.Context(), origin, token)
				return err
			}
		}
		if errs := race(accept(0), accept(1)); errs[0] != nil || errs[1] != nil {
			t.Fatalf("round %d: %v", round, errs)
		}
		// Both have joined already if the first call was repeated after a fault.
		if accepted[0].MemberID != accepted[1].MemberID ||
			!accepted[0].Already && !accepted[1].Already {
			t.Fatalf("round %d: %+v", round, accepted)
		}
		if n, _ := w.accounts(t, email); n != 1 {
			t.Fatalf("round %d: %d accounts", round, n)
		}
	}
	if org := w.org(t, w.orgA); len(org.Members) != 1+rounds || len(org.Invitations) != 0 {
		t.Errorf("got %d members, %d invitations", len(org.Members), len(org.Invitations))
	}
}

// TestMissingAccountIsCreated: a process that ends between the membership and the account leaves a
// member without an account. Opening the link again creates it.
func TestMissingAccountIsCreated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, streamstest.Start(t))
	_, token := w.invite(t, "ann@example.org", domain.RoleMember)
	parsed, err := domain.ParseInvitationToken(token)
	if err != nil {
		t.Fatal(err)
	}
	events, accepted, err := domain.DecideAcceptInvitation(
		w.org(t, w.orgA), origin, parsed, "01935f2e-0000-7000-8000-0000000000ab",
	)
	if err != nil {
		t.Fatal(err)
	}
	subject := streams.OrgSubject(w.orgA)
	last, err := w.log.Load(
		t.Context(), subject, 0, func(uint64, domain.Event) error { return nil },
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.log.Append(t.Context(), subject, last, events...); err != nil {
		t.Fatal(err)
	}
	again, err := w.AcceptInvitation(t.Context(), origin, token)
	if err != nil || !again.Already || again.MemberID != accepted.MemberID {
		t.Errorf("got %+v, %v", again, err)
	}
	if n, by := w.accounts(t, "ann@example.org"); n != 1 || by.ID != accepted.MemberID {
		t.Errorf("got %d accounts, made by %+v", n, by)
	}
}

// TestInvitationEndsWhileItIsAccepted revokes or replaces an invitation while it is accepted:
// exactly one of the two succeeds.
func TestInvitationEndsWhileItIsAccepted(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	w := newWorld(t, broker.Connect(t))
	both := w.replicas(t, broker)
	joined := 0
	for round := range rounds {
		email := fmt.Sprintf("p%d@example.org", round)
		inv, token := w.invite(t, email, domain.RoleMember)
		replace := round%2 == 1
		errs := race(func() error {
			_, err := both[0].AcceptInvitation(t.Context(), origin, token)
			return err
		}, func() error {
			// Started a little later in each round, since it is stored faster: so that each of the
			// two wins at times.
			<-time.After(time.Duration(round) * 40 * time.Microsecond)
			if !replace {
				return both[1].RevokeInvitation(t.Context(), origin, w.orgA, inv.ID)
			}
			_, err := both[1].Invite(
				t.Context(), origin, w.orgA, strings.ToUpper(email), domain.AccessAdmin,
			)
			return err
		})
		_, isMember := memberOf(w.org(t, w.orgA), email)
		if (errs[0] == nil) == (errs[1] == nil) || isMember != (errs[0] == nil) {
			t.Fatalf("round %d: %v, a member: %t", round, errs, isMember)
		}
		if n, _ := w.accounts(t, email); isMember != (n == 1) {
			t.Fatalf("round %d: a member: %t, accounts: %d", round, isMember, n)
		}
		if !isMember {
			wantCode(t, errs[0], domain.CodeNotFound)
			continue
		}
		joined++
		if replace {
			wantCode(t, errs[1], domain.CodeInvalidRequest)
		} else {
			wantCode(t, errs[1], domain.CodeNotFound)
		}
	}
	t.Logf("%d of %d were faster than what ended their invitation", joined, rounds)
}

func memberOf(org domain.OrgState, email string) (domain.OrgMember, bool) {
	i := slices.IndexFunc(
		org.Members,
		func(m domain.OrgMember) bool { return m.Address == domain.NormalizeEmail(email) },
	)
	if i < 0 {
		return domain.OrgMember{}, false
	}
	return org.Members[i], true
}
