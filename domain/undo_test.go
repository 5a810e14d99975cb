package domain_test

import (
	"testing"
	"time"

	"hubcloud/domain"
)

// undoing are the events of an aggregate, of requests by two members.
type undoing struct {
	t      *testing.T
	events []domain.Event
	at     time.Time
}

func (u *undoing) origin(member, request string) domain.Origin {
	return domain.Origin{
		At: u.at, Actor: domain.Actor{Kind: domain.ActorMember, ID: member}, RequestID: request,
	}
}

// add adds facts of a request by ann, and returns their index.
func (u *undoing) add(request string, facts ...domain.Fact) {
	for _, fact := range facts {
		u.events = append(u.events, domain.Record(u.origin(ann, request), fact))
	}
}

// want compares what undoing the request r1 leads to, and adds its events.
func (u *undoing) want(
	when string, events []domain.Event, got domain.Undone, err error, restored, newer, facts int,
) {
	u.t.Helper()
	if err != nil || got != (domain.Undone{Restored: restored, Newer: newer}) || len(events) != facts {
		u.t.Errorf("%s: got %+v, %d events, %v, want %d restored, %d newer, %d events", when, got,
			len(events), err, restored, newer, facts)
	}
	u.events = append(u.events, events...)
}

// What a request changed at a hub is set back; what somebody has changed again since stays, and a
// second press does no harm.
func TestUndoHub(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }
	label := func(device int64, room string) domain.DeviceLabeled {
		return domain.DeviceLabeled{HubID: hub, OrgID: orgA, DeviceID: device, Room: text(room)}
	}
	u := undoing{t: t, at: origin.At}
	u.add("r0", domain.HubAdded{HubID: hub, OrgID: orgA, SiteID: site1}, label(1, "Attic"),
		label(2, "Hall"))
	u.add("r1", domain.HubRenamed{HubID: hub, OrgID: orgA, Name: text("New")}, label(1, "Lab"),
		label(2, "Lab"), label(3, "Lab"))
	u.add("r2", label(2, "Office"))
	decide := func(o domain.Origin, org string) ([]domain.Event, domain.Undone, error) {
		return domain.DecideUndoHub(u.events, o, org, "r1")
	}
	events, undone, err := decide(u.origin(ann, "r3"), orgA)
	u.want("in time", events, undone, err, 3, 1, 3)
	var state domain.HubState
	for _, e := range u.events {
		if state, err = domain.EvolveHub(state, e); err != nil {
			t.Fatal(err)
		}
	}
	if _, labeled := state.Labels[3]; state.Name != nil || labeled ||
		*state.Labels[1].Room != "Attic" || *state.Labels[2].Room != "Office" {
		t.Errorf("got %+v, want the former name and rooms, and the newer one", state)
	}
	events, undone, err = decide(u.origin(ann, "r3"), orgA)
	u.want("again", events, undone, err, 3, 1, 0)
	late := u.origin(ann, "r3")
	late.At = late.At.Add(domain.UndoTime + time.Second)
	for name, c := range map[string]struct {
		o   domain.Origin
		org string
	}{
		"too late": {late, orgA}, "another member": {u.origin(site1, "r3"), orgA},
		"another organization": {u.origin(ann, "r3"), orgB},
	} {
		if events, _, err := decide(c.o, c.org); domain.CodeOf(err) != domain.CodeNotFound {
			t.Errorf("%s: got %d events, %v, want ErrCannotUndo", name, len(events), err)
		}
	}
}

func TestUndoSite(t *testing.T) {
	t.Parallel()
	u := undoing{t: t, at: origin.At}
	u.add("r0", domain.SiteCreated{OrgID: orgA, SiteID: site1, Name: "North"})
	u.add("r1", domain.SiteRenamed{OrgID: orgA, SiteID: site1, Name: "Nort"})
	events, undone, err := domain.DecideUndoSite(u.events, u.origin(ann, "r3"), "r1")
	u.want("a rename", events, undone, err, 1, 0, 1)
	u.add("r4", domain.SiteRenamed{OrgID: orgA, SiteID: site1, Name: "South"})
	events, undone, err = domain.DecideUndoSite(u.events, u.origin(ann, "r3"), "r1")
	u.want("renamed again", events, undone, err, 0, 1, 0)
}

// A revoked invitation is pending again with its link, unless the person was invited again.
func TestUndoOrg(t *testing.T) {
	t.Parallel()
	u := undoing{t: t, at: origin.At}
	const invited, again = "01935f2e-0000-7000-8000-0000000000c1", "01935f2e-0000-7000-8000-0000000000c2"
	invitation := domain.MemberInvited{
		OrgID: orgA, InvitationID: invited, Email: "B@example.org", Role: domain.RoleAdmin,
		TokenHash: make([]byte, 32), ExpiresAt: u.at.Add(time.Hour),
	}
	u.add("r0", domain.OrgCreated{OrgID: orgA, Name: "Acme"}, domain.MemberAdded{
		OrgID: orgA, MemberID: ann, Email: "a@example.org", Role: domain.RoleOwner,
	}, invitation)
	u.add("r1", domain.MemberInvitationRevoked{OrgID: orgA, InvitationID: invited},
		domain.OrgRenamed{OrgID: orgA, Name: "Acne"},
		domain.MemberNamed{OrgID: orgA, MemberID: ann, Name: "An"})
	revoked := len(u.events)
	events, undone, err := domain.DecideUndoOrg(u.events, u.origin(ann, "r3"), "r1")
	u.want("revoked", events, undone, err, 3, 0, 3)
	var state domain.OrgState
	for _, e := range u.events {
		if state, err = domain.EvolveOrg(state, e); err != nil {
			t.Fatal(err)
		}
	}
	got, ok := state.Invitation(invited)
	if !ok || got.Role != domain.RoleAdmin || !got.ExpiresAt.Equal(invitation.ExpiresAt) ||
		state.Name != "Acme" || state.Members[0].Name != "" {
		t.Errorf("got %+v in %+v, want the invitation and the names", got, state)
	}
	events, undone, err = domain.DecideUndoOrg(u.events, u.origin(ann, "r3"), "r1")
	u.want("again", events, undone, err, 3, 0, 0)
	u.events = u.events[:revoked]
	invitation.InvitationID = again
	u.add("r2", invitation, domain.OrgRenamed{OrgID: orgA, Name: "Acme Ltd"})
	events, undone, err = domain.DecideUndoOrg(u.events, u.origin(ann, "r3"), "r1")
	u.want("invited again", events, undone, err, 1, 2, 1)
	u.add("r2", domain.MemberRoleChanged{OrgID: orgA, MemberID: ann, Role: domain.RoleMember})
	if _, _, err := domain.DecideUndoOrg(u.events, u.origin(ann, "r3"), "r1"); domain.CodeOf(err) !=
		domain.CodeForbidden {
		t.Errorf("a member now: got %v, want forbidden", err)
	}
}
