package domain_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
)

const ttl = 7 * 24 * time.Hour

func invitationID(n int) string { return fmt.Sprintf("01935f2e-0000-7000-8000-00000001%04d", n) }

// link is the token of the test's n-th invitation.
func link(n int) domain.InvitationToken {
	return domain.InvitationToken{
		OrgID:        orgA,
		InvitationID: invitationID(n),
		Secret:       [32]byte{byte(n), byte(n >> 8), 1},
	}
}

func invited(n int, email string, role domain.Role) domain.MemberInvited {
	hash := link(n).SecretHash()
	return domain.MemberInvited{
		OrgID: orgA, InvitationID: invitationID(n), Email: email, Role: role, TokenHash: hash[:],
		ExpiresAt: origin.At.Add(ttl),
	}
}

func invite(n int, email string, role domain.Role) domain.Invite {
	return domain.Invite{
		InvitationID: invitationID(n),
		Email:        email,
		Access:       domain.Access(role),
		TokenHash:    link(n).SecretHash(),
		TTL:          ttl,
		MaxPerHour:   1 << 20,
	}
}

func later(o domain.Origin, by time.Duration) domain.Origin {
	o.At = o.At.Add(by)
	return o
}

func TestInvite(t *testing.T) {
	t.Parallel()
	few := fold(
		t, domain.EvolveOrg, created, owner1, admin1, member1,
		invited(1, "Ann@example.org", domain.RoleMember),
	)
	again := invited(2, "ann@Example.org", domain.RoleAdmin)
	again.Replaces = invitationID(1)
	const bob, member = "bob@example.org", domain.AccessMember
	const forbidden, invalid = domain.CodeForbidden, domain.CodeInvalidRequest
	plain := invited(2, bob, domain.RoleMember)
	viewer := invited(2, bob, domain.RoleMember)
	viewer.ViewOnly = true
	for name, c := range map[string]struct {
		who, email string
		access     domain.Access
		want       domain.MemberInvited
		code       domain.Code
	}{
		"by a key":            {byKey, bob, member, plain, ""},
		"by an owner":         {olga, bob, member, plain, ""},
		"by an admin":         {ada, bob, domain.AccessAdmin, invited(2, bob, domain.RoleAdmin), ""},
		"a viewer":            {olga, bob, domain.AccessViewer, viewer, ""},
		"again":               {byKey, again.Email, domain.AccessAdmin, again, ""},
		"by a member":         {who: maxi, email: bob, access: member, code: forbidden},
		"by who was removed":  {who: nemo, email: bob, access: member, code: forbidden},
		"an owner":            {who: byKey, email: bob, access: domain.AccessOwner, code: forbidden},
		"an owner by another": {who: olga, email: bob, access: domain.AccessOwner, code: forbidden},
		"a boss":              {who: byKey, email: bob, access: "boss", code: invalid},
		"no role":             {who: byKey, email: bob, code: invalid},
		"a member":            {who: byKey, email: "OLGA@example.org", access: member, code: invalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, cmd := acting(c.who), invite(2, c.email, domain.RoleMember)
			cmd.Access = c.access
			events, err := domain.DecideInvite(few, o, cmd)
			checkDecisionBy(t, o, events, err, []domain.Fact{c.want}, c.code)
		})
	}
	for _, who := range []string{byKey, olga} {
		cmd := invite(2, bob, domain.RoleMember)
		_, err := domain.DecideInvite(domain.OrgState{}, acting(who), cmd)
		if domain.CodeOf(err) != domain.CodeNotFound {
			t.Errorf("invite to an unknown organization: got %v, want not_found", err)
		}
	}
	after := fold(
		t, domain.EvolveOrg, created, owner1, invited(1, "Ann@example.org", domain.RoleMember),
		again,
	)
	if len(after.Invitations) != 1 || after.Invitations[0].ID != invitationID(2) {
		t.Errorf("folded to %+v, want %s alone", after.Invitations, invitationID(2))
	}
	view := after.Invitations[0].View(origin.At)
	want := domain.Invitation{
		ID: invitationID(2), Email: "ann@Example.org", Role: domain.RoleAdmin,
		Status:    domain.InvitationPending,
		CreatedAt: origin.At, ExpiresAt: origin.At.Add(ttl),
	}
	if view != want {
		t.Errorf("View: got %+v, want %+v", view, want)
	}
	events, _, err := domain.DecideAcceptInvitation(
		fold(t, domain.EvolveOrg, created, owner1, viewer), origin, link(2), nemo,
	)
	if err != nil || len(events) == 0 ||
		!strings.Contains(string(events[0].Data), `"view_only":true`) {
		t.Errorf("accept as a viewer: got %v, %v, want one who may only look", events, err)
	}
	view = after.Invitations[0].View(origin.At.Add(ttl))
	if view.Status != domain.InvitationExpired {
		t.Errorf("View at ExpiresAt: got status %s, want expired", view.Status)
	}
}

// A new invitation of an address takes the place of an expired one, but does not name it as
// replaced, since only pending invitations can be replaced.
func TestInviteAfterExpiry(t *testing.T) {
	t.Parallel()
	state := fold(
		t, domain.EvolveOrg, created, owner1, invited(1, "ann@example.org", domain.RoleMember),
	)
	o := later(origin, ttl)
	events, err := domain.DecideInvite(state, o, invite(2, "ann@example.org", domain.RoleMember))
	if err != nil || len(events) != 1 {
		t.Fatalf("DecideInvite: got %v, %v, want one event", events, err)
	}
	fact, err := events[0].Fact()
	if f, ok := fact.(domain.MemberInvited); err != nil || !ok || f.Replaces != "" ||
		!f.ExpiresAt.Equal(o.At.Add(ttl)) {
		t.Errorf("got %+v, %v, want an invitation that replaces none", fact, err)
	}
	if state, err = domain.EvolveOrg(state, events[0]); err != nil || len(state.Invitations) != 1 {
		t.Errorf("folded to %+v, %v, want one invitation", state.Invitations, err)
	}
	_, _, err = domain.DecideAcceptInvitation(state, o, link(1), maxi)
	if domain.CodeOf(err) != domain.CodeNotFound || errors.Is(err, domain.ErrInvitationExpired) {
		t.Errorf("accept the first link: got %v, want not_found", err)
	}
}

// Who may revoke which invitation. TestOrgRulesHoldOverEveryHistory tries what follows.
func TestRevokeInvitation(t *testing.T) {
	t.Parallel()
	state := fold(
		t, domain.EvolveOrg, created, owner1, admin1, member1,
		invited(1, "ann@example.org", domain.RoleMember),
	)
	revoked := []domain.Fact{
		domain.MemberInvitationRevoked{OrgID: orgA, InvitationID: invitationID(1)},
	}
	for who, code := range map[string]domain.Code{
		byKey: "", olga: "", ada: "", maxi: domain.CodeForbidden,
	} {
		events, err := domain.DecideRevokeInvitation(state, acting(who), invitationID(1))
		checkDecisionBy(t, acting(who), events, err, revoked, code)
	}
	for _, id := range []string{"", "*", invitationID(2), orgA} {
		_, err := domain.DecideRevokeInvitation(state, origin, id)
		if domain.CodeOf(err) != domain.CodeNotFound {
			t.Errorf("revoke %q: got %v, want not_found", id, err)
		}
	}
	_, err := domain.DecideRevokeInvitation(state, later(origin, ttl), invitationID(1))
	if domain.CodeOf(err) != domain.CodeNotFound {
		t.Errorf("revoke an expired invitation: got %v, want not_found", err)
	}
}

func TestAcceptInvitation(t *testing.T) {
	t.Parallel()
	pending := fold(
		t, domain.EvolveOrg, created, owner1, invited(1, "Ann@example.org", domain.RoleAdmin),
	)
	memberAdded := joined(nemo, "Ann@example.org", domain.RoleAdmin)
	done := domain.MemberInvitationAccepted{
		OrgID:        orgA,
		InvitationID: invitationID(1),
		MemberID:     nemo,
	}

	events, acceptance, err := domain.DecideAcceptInvitation(
		pending, later(origin, ttl-time.Microsecond), link(1), nemo,
	)
	for i := range events {
		events[i].At = origin.At
	}
	checkDecision(t, events, err, []domain.Fact{memberAdded, done}, "")
	want := domain.Acceptance{
		OrgID: orgA, OrgName: "Acme", MemberID: nemo, Email: "Ann@example.org",
		Access: domain.AccessAdmin, InvitedAt: origin.At, ExpiresAt: origin.At.Add(ttl),
	}
	if acceptance != want {
		t.Errorf("got acceptance %+v, want %+v", acceptance, want)
	}
	member, _ := fold(
		t, domain.EvolveOrg, created, owner1, invited(1, "Ann@example.org", domain.RoleAdmin),
		memberAdded, done,
	).Member(nemo)
	if got := member.View(); got != (domain.Member{
		ID: nemo, Email: "Ann@example.org", Role: domain.RoleAdmin, JoinedAt: origin.At,
	}) {
		t.Errorf("View of the member: got %+v", got)
	}
	_, _, err = domain.DecideAcceptInvitation(pending, later(origin, ttl), link(1), nemo)
	if !errors.Is(err, domain.ErrInvitationExpired) || domain.CodeOf(err) != domain.CodeNotFound {
		t.Errorf("accept at ExpiresAt: got %v, want ErrInvitationExpired", err)
	}
	wrong := link(1)
	wrong.Secret[31] ^= 1
	other := link(2)
	other.Secret = link(1).Secret
	for name, token := range map[string]domain.InvitationToken{
		"a wrong secret": wrong, "another's id": other, "nothing": {},
	} {
		_, _, err := domain.DecideAcceptInvitation(pending, origin, token, nemo)
		if domain.CodeOf(err) != domain.CodeNotFound || errors.Is(err, domain.ErrInvitationExpired) {
			t.Errorf("%s: got %v, want not_found", name, err)
		}
	}

	// A repeated acceptance changes nothing, at any time and with any role of the member, but still
	// requires the secret.
	accepted := fold(
		t, domain.EvolveOrg, created, owner1, invited(1, "Ann@example.org", domain.RoleAdmin),
		memberAdded, done,
		domain.MemberRoleChanged{OrgID: orgA, MemberID: nemo, Role: domain.RoleMember},
	)
	want.Already, want.Access = true, domain.AccessMember
	events, acceptance, err = domain.DecideAcceptInvitation(
		accepted, later(origin, 2*ttl), link(1), maxi,
	)
	checkDecision(t, events, err, nil, "")
	if acceptance != want || len(accepted.Invitations) != 0 {
		t.Errorf("accept again: got %+v, want %+v", acceptance, want)
	}
	for _, token := range []domain.InvitationToken{wrong, {}} {
		_, _, err := domain.DecideAcceptInvitation(accepted, origin, token, maxi)
		if domain.CodeOf(err) != domain.CodeNotFound {
			t.Errorf("accept again with a wrong secret: got %v, want not_found", err)
		}
	}
	events, err = domain.DecideInvite(
		accepted, origin, invite(2, "ann@EXAMPLE.org", domain.RoleMember),
	)
	checkDecision(t, events, err, nil, domain.CodeInvalidRequest)
	// A removed member cannot use the old link again, but can be invited again.
	removed := fold(
		t, domain.EvolveOrg, created, owner1, invited(1, "Ann@example.org", domain.RoleAdmin),
		memberAdded, done, domain.MemberRemoved{OrgID: orgA, MemberID: nemo},
	)
	_, _, err = domain.DecideAcceptInvitation(removed, origin, link(1), maxi)
	if domain.CodeOf(err) != domain.CodeNotFound {
		t.Errorf("accept the link of a removed member: got %v, want not_found", err)
	}
	_, err = domain.DecideInvite(removed, origin, invite(2, "ann@example.org", domain.RoleMember))
	if err != nil {
		t.Errorf("invite a removed member: got %v, want no error", err)
	}
}

func TestInvitationsAreBounded(t *testing.T) {
	t.Parallel()
	state := fold(t, domain.EvolveOrg, created, owner1)
	week := func(n int) domain.Origin { return later(origin, time.Duration(n)*ttl) }
	address := func(n int) string { return fmt.Sprintf("p%d@example.org", n) }
	// Each week has as many invitations as may be pending. The last one of a week is a decision,
	// the others are put into the state.
	const each = domain.DefaultPendingInvitations
	for w := range 3 {
		for n := w * each; n < (w+1)*each-1; n++ {
			state.Invitations = append(state.Invitations, domain.OrgInvitation{
				ID: invitationID(n), Email: address(n), Address: address(n),
				Role: domain.RoleMember, CreatedAt: week(w).At, ExpiresAt: week(w + 1).At,
				TokenHash: link(n).SecretHash(),
			})
		}
		send := func(n int) error {
			events, err := domain.DecideInvite(
				state, week(w), invite(n, address(n), domain.RoleMember),
			)
			for _, e := range events {
				if state, err = domain.EvolveOrg(state, e); err != nil {
					t.Fatal(err)
				}
			}
			return err
		}
		last := (w+1)*each - 1
		if err := send(last); err != nil {
			t.Fatal(err)
		}
		if err := send(last + 1); domain.CodeOf(err) != domain.CodeRateLimited {
			t.Errorf("one more than may be pending: got %v, want rate_limited", err)
		}
		// The limit does not apply to an invitation that replaces another.
		if err := send(last); err != nil {
			t.Error(err)
		}
	}
	if len(state.Invitations) != domain.DefaultPendingInvitations+domain.MaxExpiredInvitations {
		t.Errorf(
			"got %d invitations in the state, want %d", len(state.Invitations),
			domain.DefaultPendingInvitations+domain.MaxExpiredInvitations,
		)
	}
	// Only remembered invitations are reported as expired.
	_, _, err := domain.DecideAcceptInvitation(state, week(2), link(each+1), nemo)
	if !errors.Is(err, domain.ErrInvitationExpired) {
		t.Errorf("accept last week's link: got %v, want ErrInvitationExpired", err)
	}
	_, _, err = domain.DecideAcceptInvitation(state, week(2), link(0), nemo)
	if domain.CodeOf(err) != domain.CodeNotFound || errors.Is(err, domain.ErrInvitationExpired) {
		t.Errorf("accept a forgotten link: got %v, want not_found", err)
	}
}
