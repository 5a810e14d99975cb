package readmodel_test

import (
	"reflect"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/projectionstest"
	"hubcloud/streams"
)

// Rows of activity were never deleted. They are deleted after domain.ActivityRetention, the same
// rows however the read models are built.
func TestOldActivityIsDeleted(t *testing.T) {
	t.Parallel()
	w, s := projectionstest.NewProjected(t)
	now := time.Now()
	old := now.Add(-domain.ActivityRetention - 48*time.Hour)
	kept := now.Add(-domain.ActivityRetention + 48*time.Hour)
	w.AppendAt(
		t, old, streams.OrgSubject(org), domain.OrgCreated{OrgID: org, Name: "Mill"},
		projectionstest.MemberAdded(org, 1, domain.RoleOwner),
	)
	projectionstest.Await(
		t,
		s,
		w.AppendAt(
			t, kept, streams.OrgSubject(org),
			projectionstest.MemberAdded(org, 2, domain.RoleMember),
		),
	)
	// No newer event exists, so the table keeps all three. A read leaves out what is too old.
	if n := w.RowCount(t, s.Schema(), "activity"); n != 3 {
		t.Errorf("got %d rows of activity, want 3", n)
	}
	if page, err := s.Activity(t.Context(), org, 10, 0); err != nil || len(page.Data) != 1 ||
		page.Data[0].SubjectID != memberID(2) {
		t.Errorf("Activity: got %+v, %v, want one event", page, err)
	}
	projectionstest.Await(
		t,
		s,
		w.AppendAt(
			t, now, streams.OrgSubject(org), projectionstest.MemberAdded(org, 3, domain.RoleMember),
		),
	)
	if n := w.RowCount(t, s.Schema(), "activity"); n != 2 {
		t.Errorf("got %d rows of activity, want 2", n)
	}
	if people, err := s.Members(t.Context(), org, 10, ""); err != nil || len(people.Data) != 3 {
		t.Errorf("Members: got %+v, %v, want three", people, err)
	}
	if _, differences := projectionstest.Verify(t, w.Control(t)); len(differences) > 0 {
		t.Errorf("Verify: got differences %+v, want none", differences)
	}
}

// A released hub is in no list of its organization, and the next organization sees nothing of the
// hub's past.
func TestReleasedHubIsNotFound(t *testing.T) {
	t.Parallel()
	w, s := projectionstest.NewProjected(t)
	a := w.RunIndex(t, s)
	name := "Front door"
	w.Append(t, streams.OrgSubject(org), domain.OrgCreated{OrgID: org, Name: "Mill"})
	w.AddSite(t, org, 1)
	w.AddSite(t, other, 2)
	w.AddHub(t, org, 1, 1)
	labeled := w.Append(
		t, streams.HubSubject(hubID(1)),
		domain.DeviceLabeled{HubID: hubID(1), OrgID: org, DeviceID: 3, Name: &name},
	)
	projectionstest.Await(t, s, labeled)
	released := w.Append(
		t, streams.HubSubject(hubID(1)), domain.HubReleased{HubID: hubID(1), OrgID: org, After: 77},
	)
	projectionstest.Await(t, s, released)
	projectionstest.Await(t, a, released)
	if access, ok := a.Hub(hubID(1)); ok {
		t.Errorf("access to a released hub: got %+v, want none", access)
	}
	if hubs, err := s.Hubs(t.Context(), domain.Reach{OrgID: org}, nil, 10, ""); err != nil || len(hubs.Data) != 0 {
		t.Errorf("Hubs: got %+v, %v, want none", hubs, err)
	}
	if _, err := s.Hub(t.Context(), org, hubID(1)); domain.CodeOf(
		err,
	) != domain.CodeNotFound {
		t.Errorf("Hub: got %v, want not_found", err)
	}
	if site, err := s.Site(t.Context(), org, siteID(1)); err != nil ||
		site.HubCount != 0 {
		t.Errorf("Site: got %+v, %v, want no hubs", site, err)
	}
	if page, err := s.Activity(t.Context(), org, 1, 0); err != nil || len(page.Data) != 1 ||
		page.Data[0].Type != (domain.HubReleased{}).EventType() ||
		page.Data[0].SubjectID != string(hubID(1)) {
		t.Errorf("Activity: got %+v, %v, want the release", page, err)
	}
	again := projectionstest.HubAdded(other, 1, 2)
	again.After, again.EpochID = 77, domain.NewEpochID(0xabcd)
	seq := w.Append(t, streams.HubSubject(hubID(1)), again)
	projectionstest.Await(t, s, seq)
	projectionstest.Await(t, a, seq)
	want := domain.HubAccess{
		OrgID: other, SiteID: siteID(2),
		Epoch: domain.Epoch{ID: domain.NewEpochID(0xabcd), After: 77},
	}
	if got, ok := a.Hub(hubID(1)); !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("access to the hub is %+v, want %+v", got, want)
	}
	if fresh := w.RunIndex(t, s); fresh != nil {
		projectionstest.Await(t, fresh, seq)
		if got, _ := fresh.Hub(hubID(1)); !reflect.DeepEqual(got, want) {
			t.Errorf("from the read models, access to the hub is %+v, want %+v", got, want)
		}
	}
	if labels, err := s.DeviceLabels(t.Context(), other, hubID(1)); err != nil ||
		len(labels) != 0 {
		t.Errorf("DeviceLabels: got %+v, %v, want none", labels, err)
	}
	if _, differences := projectionstest.Verify(t, w.Control(t)); len(differences) > 0 {
		t.Errorf("Verify: got differences %+v, want none", differences)
	}
}
