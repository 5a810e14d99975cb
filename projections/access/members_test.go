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

// Members are found in every organization, however their address is written, whichever source the
// index was loaded from. Removed members are not.
func TestMemberships(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	s := w.OpenStore(t)
	stop := w.Project(t, s).Stop
	w.Append(
		t, streams.OrgSubject(org), domain.OrgCreated{OrgID: org, Name: "Mill"},
		projectionstest.MemberAdded(org, 1, domain.RoleOwner),
		projectionstest.MemberAdded(org, 2, domain.RoleMember),
	)
	w.Do(
		t, s, streams.OrgSubject(other), domain.OrgCreated{OrgID: other, Name: "Bay"},
		domain.MemberAdded{
			OrgID: other, MemberID: projectionstest.MemberID(3), Email: "p1@EXAMPLE.org",
			Role: domain.RoleMember,
		},
		domain.MemberAdded{
			OrgID: other, MemberID: projectionstest.MemberID(4), Email: "p1+4@example.org",
			Role: domain.RoleOwner,
		},
	)
	stop()
	behind := w.Append(t, streams.OrgSubject(org), projectionstest.RoleChanged(org, 2, domain.RoleAdmin))
	for name, store := range map[string]*readmodel.Store{
		"from the read models": s, "from the directory": nil,
	} {
		a := w.RunIndex(t, store)
		projectionstest.Await(t, a, behind)
		// One person had 20 organizations for each sub-address.
		if n := a.OwnedBy("p1+other@example.org"); n != 2 {
			t.Errorf("%s: the addresses of a mailbox own %d organizations, want 2", name, n)
		}
		all := a.Memberships("P1@example.org ")
		if got := organizations(all); len(got) != 2 || got[0] != other+" member" ||
			got[1] != org+" owner" ||
			all[0].OrgName != "Bay" {
			t.Errorf("%s: Memberships = %v, want one of each organization", name, all)
		}
		if m, ok := a.Membership(org, "p2@example.org"); !ok || m.Role != domain.RoleAdmin ||
			m.MemberID != projectionstest.MemberID(2) ||
			m.OrgName != "Mill" {
			t.Errorf("%s: Membership = %+v, want an admin of Mill", name, m)
		}
		if _, ok := a.Membership(other, "p2@example.org"); ok {
			t.Errorf("%s: Membership returns a member of another organization", name)
		}
	}
	a := w.RunIndex(t, nil)
	projectionstest.Await(t, a, behind)
	here, _ := a.Membership(org, "p1@example.org")
	there, _ := a.Membership(other, "p1@example.org")
	w.Do(t, a, streams.OrgSubject(org), projectionstest.MemberRemoved(org, 1))
	select {
	case <-here.Ended:
	default:
		t.Error("Ended is open after the member was removed")
	}
	select {
	case <-there.Ended:
		t.Error("Ended of the membership in another organization is closed")
	default:
	}
	if _, ok := a.Membership(org, "p1@example.org"); ok ||
		len(a.Memberships("p1@example.org")) != 1 {
		t.Error("Membership returns a removed member")
	}
}
