package access_test

import (
	"testing"

	"hubcloud/domain"
	"hubcloud/projections/projectionstest"
	"hubcloud/projections/readmodel"
	"hubcloud/streams"
)

func organizations(all []domain.MemberAccess) (ids []string) {
	for _, m := range all {
		ids = append(ids, m.OrgID+" "+string(m.Role))
	}
	return ids
}

// TestMembersAreLetIn wherever they are a member, however their address is written, from either
// source; and out at once when they are removed.
func TestMembersAreLetIn(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	s := w.OpenStore(t)
	stop := w.Project(t, s).Stop
	w.Append(
		t,
		streams.OrgSubject(org),
		domain.OrgCreated{OrgID: org, Name: "Mill"},
		projectionstest.MemberAdded(org, 1, domain.RoleOwner),
		projectionstest.MemberAdded(org, 2, domain.RoleMember),
	)
	projectionstest.Await(t, s, w.Append(
		t,
		streams.OrgSubject(other),
		domain.OrgCreated{OrgID: other, Name: "Bay"},
		domain.MemberAdded{
			OrgID:    other,
			MemberID: projectionstest.MemberID(3),
			Email:    "p1@EXAMPLE.org",
			Role:     domain.RoleMember,
		},
	))
	stop()
	behind := w.Append(
		t,
		streams.OrgSubject(org),
		domain.MemberRoleChanged{
			OrgID:    org,
			MemberID: projectionstest.MemberID(2),
			Role:     domain.RoleAdmin,
		},
	)
	for name, store := range map[string]*readmodel.Store{
		"from the read models": s, "from the directory": nil,
	} {
		a := w.RunIndex(t, store)
		projectionstest.Await(t, a, behind)
		all := a.Memberships("P1@example.org ")
		if got := organizations(all); len(got) != 2 || got[0] != other+" member" ||
			got[1] != org+" owner" ||
			all[0].OrgName != "Bay" {
			t.Errorf("%s: %v", name, all)
		}
		if m, ok := a.Membership(org, "p2@example.org"); !ok || m.Role != domain.RoleAdmin ||
			m.MemberID != projectionstest.MemberID(2) ||
			m.OrgName != "Mill" {
			t.Errorf("%s: %+v", name, m)
		}
		if _, ok := a.Membership(other, "p2@example.org"); ok {
			t.Errorf("%s: a member of another organization is let in", name)
		}
	}
	a := w.RunIndex(t, nil)
	projectionstest.Await(t, a, behind)
	here, _ := a.Membership(org, "p1@example.org")
	there, _ := a.Membership(other, "p1@example.org")
	projectionstest.Await(
		t,
		a,
		w.Append(
			t, streams.OrgSubject(org),
			domain.MemberRemoved{OrgID: org, MemberID: projectionstest.MemberID(1)},
		),
	)
	select {
	case <-here.Ended:
	default:
		t.Error("what was opened by the member goes on")
	}
	select {
	case <-there.Ended:
		t.Error("the membership of another organization has ended")
	default:
	}
	if _, ok := a.Membership(org, "p1@example.org"); ok ||
		len(a.Memberships("p1@example.org")) != 1 {
		t.Error("a member who was removed is let in")
	}
}
