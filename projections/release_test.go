package projections

import (
	"reflect"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
	"hubcloud/streams"
)

// Rows of activity were kept for ever. They end with domain.ActivityRetention, the same rows
// however the read models are made.
func TestActivityEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open(t)
	w.project(t, s)
	now := time.Now()
	old, kept := now.Add(-domain.ActivityRetention-48*time.Hour), now.Add(-domain.ActivityRetention+48*time.Hour)
	w.tellAt(
		t, old, streams.OrgSubject(org), domain.OrgCreated{OrgID: org, Name: "Mill"},
		joined(org, 1, domain.RoleOwner),
	)
	await(t, s, w.tellAt(t, kept, streams.OrgSubject(org), joined(org, 2, domain.RoleMember)))
	// Nothing newer is known: in the tables all three are there. A read leaves out what is too old.
	if n := w.rowCount(t, s, "activity"); n != 3 {
		t.Errorf("%d rows are kept, want 3", n)
	}
	if page, err := s.Activity(t.Context(), org, 10, 0); err != nil || len(page.Data) != 1 ||
		page.Data[0].SubjectID != memberID(2) {
		t.Errorf("%+v, %v", page, err)
	}
	await(t, s, w.tellAt(t, now, streams.OrgSubject(org), joined(org, 3, domain.RoleMember)))
	if n := w.rowCount(t, s, "activity"); n != 2 {
		t.Errorf("%d rows are kept, want 2", n)
	}
	if people, err := s.Members(t.Context(), org, 10, ""); err != nil || len(people.Data) != 3 {
		t.Errorf("members %+v, %v", people, err)
	}
	if _, differences := verified(t, w.control(t)); len(differences) > 0 {
		t.Errorf("built anew: %+v", differences)
	}
}

// rowCount returns how many rows a table of the read models has.
func (w *world) rowCount(t testing.TB, s *Store, table string) (n int) {
	t.Helper()
	config, err := poolConfig(w.url, s.Schema())
	if err != nil {
		t.Fatal(err)
	}
	err = onConn(t.Context(), config.ConnConfig, func(conn *pgx.Conn) error {
		return conn.QueryRow(t.Context(), "SELECT count(*) FROM "+pgx.Identifier{table}.Sanitize()).
			Scan(&n)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A hub that was taken away from its organization is in none of its lists, and whoever adds it next
// sees nothing of what was set before.
func TestAReleasedHubIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open(t)
	w.project(t, s)
	a := w.access(t, s, w.dir)
	name := "Front door"
	w.tell(t, streams.OrgSubject(org), domain.OrgCreated{OrgID: org, Name: "Mill"})
	w.site(t, org, 1)
	w.site(t, other, 2)
	w.hub(t, org, 1, 1)
	labeled := w.tell(
		t, streams.HubSubject(hubID(1)),
		domain.DeviceLabeled{HubID: hubID(1), OrgID: org, DeviceID: 3, Name: &name},
	)
	await(t, s, labeled)
	released := w.tell(
		t, streams.HubSubject(hubID(1)), domain.HubReleased{HubID: hubID(1), OrgID: org, After: 77},
	)
	await(t, s, released)
	await(t, a, released)
	if access, ok := a.Hub(hubID(1)); ok {
		t.Errorf("requests are let in to %+v", access)
	}
	if hubs, err := s.Hubs(t.Context(), org, nil, 10, ""); err != nil || len(hubs.Data) != 0 {
		t.Errorf("hubs %+v, %v", hubs, err)
	}
	if _, err := s.Hub(t.Context(), org, hubID(1)); domain.CodeOf(err) != domain.CodeNotFound {
		t.Errorf("the hub: %v", err)
	}
	if site, err := s.Site(t.Context(), org, siteID(1)); err != nil || site.HubCount != 0 {
		t.Errorf("site %+v, %v", site, err)
	}
	if page, err := s.Activity(t.Context(), org, 1, 0); err != nil || len(page.Data) != 1 ||
		page.Data[0].Type != domain.TypeHubReleased ||
		page.Data[0].SubjectID != string(hubID(1)) {
		t.Errorf("activity %+v, %v", page, err)
	}
	again := added(other, 1, 2)
	again.After, again.EpochID = 77, domain.NewEpochID(0xabcd)
	seq := w.tell(t, streams.HubSubject(hubID(1)), again)
	await(t, s, seq)
	await(t, a, seq)
	want := domain.HubAccess{
		OrgID: other, Epoch: domain.Epoch{ID: domain.NewEpochID(0xabcd), After: 77},
	}
	if got, ok := a.Hub(hubID(1)); !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("access to the hub is %+v, want %+v", got, want)
	}
	if fresh := w.access(t, s, w.dir); fresh != nil {
		await(t, fresh, seq)
		if got, _ := fresh.Hub(hubID(1)); !reflect.DeepEqual(got, want) {
			t.Errorf("from the read models, access to the hub is %+v, want %+v", got, want)
		}
	}
	if labels, err := s.DeviceLabels(t.Context(), other, hubID(1)); err != nil || len(labels) != 0 {
		t.Errorf("labels %+v, %v", labels, err)
	}
	if _, differences := verified(t, w.control(t)); len(differences) > 0 {
		t.Errorf("built anew: %+v", differences)
	}
}
