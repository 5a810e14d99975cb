package projections

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/directory"
	"hubcloud/streams/directory/directorytest"
)

func memberID(n int) string { return fmt.Sprintf("01930000-0000-7000-8000-00000001%04d", n) }

func invitationID(n int) string { return fmt.Sprintf("01930000-0000-7000-8000-00000002%04d", n) }

func joined(org string, n int, role domain.Role) domain.MemberAdded {
	return domain.MemberAdded{
		OrgID:    org,
		MemberID: memberID(n),
		Email:    fmt.Sprintf("P%d@example.org", n),
		Role:     role,
	}
}

func invited(org string, n int, expires time.Time, replaces string) domain.MemberInvited {
	return domain.MemberInvited{
		OrgID: org, InvitationID: invitationID(n), Email: fmt.Sprintf("I%d@example.org", n),
		Role:      domain.RoleMember,
		TokenHash: make([]byte, 32), ExpiresAt: expires, Replaces: replaces,
	}
}

// everyPage gives the ids of a list, read in pages of a size.
func everyPage[T any](
	t *testing.T, limit int, page func(limit int, after string) (domain.Page[T], error),
	id func(T) string,
) (ids []string) {
	t.Helper()
	for after := ""; ; after = ids[len(ids)-1] {
		got, err := page(limit, after)
		if err != nil {
			t.Fatal(err)
		}
		if got.Data == nil || len(got.Data) > limit || got.HasMore && len(got.Data) < limit {
			t.Fatalf("a page of %d: %+v", limit, got)
		}
		for _, item := range got.Data {
			ids = append(ids, id(item))
		}
		if !got.HasMore {
			return ids
		}
	}
}

func TestMembersAreListedOwnersFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open(t)
	w.project(t, s)
	// All in one microsecond, with ids that are in no order.
	at := time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)
	subject := streams.OrgSubject(org)
	w.tellAt(
		t, at, subject, domain.OrgCreated{OrgID: org, Name: "Org"},
		joined(org, 9, domain.RoleOwner), joined(org, 5, domain.RoleMember),
	)
	w.tellAt(
		t, at, subject, joined(org, 7, domain.RoleAdmin), joined(org, 1, domain.RoleOwner),
		joined(org, 3, domain.RoleMember),
	)
	await(t, s, w.tell(t, streams.OrgSubject(other), joined(other, 8, domain.RoleOwner)))

	members := func(limit int, after string) (domain.Page[domain.Member], error) {
		return s.Members(t.Context(), org, limit, after)
	}
	id := func(m domain.Member) string { return m.ID }
	listed := func(want ...int) {
		t.Helper()
		ids := make([]string, 0, len(want))
		for _, n := range want {
			ids = append(ids, memberID(n))
		}
		for limit := 1; limit <= len(want)+1; limit++ {
			if got := everyPage(t, limit, members, id); !reflect.DeepEqual(got, ids) {
				t.Errorf("in pages of %d: %v, want %v", limit, got, ids)
			}
		}
	}
	listed(9, 1, 5, 7, 3)
	want := domain.Member{
		ID:       memberID(7),
		Email:    "P7@example.org",
		Role:     domain.RoleAdmin,
		JoinedAt: at,
	}
	if got, err := s.Member(t.Context(), org, memberID(7)); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}

	// A new owner comes among the owners by the time of joining.
	await(
		t,
		s,
		w.tell(
			t, subject,
			domain.MemberRoleChanged{OrgID: org, MemberID: memberID(5), Role: domain.RoleOwner},
		),
	)
	listed(9, 5, 1, 7, 3)
	await(
		t,
		s,
		w.tell(
			t,
			subject,
			domain.MemberRoleChanged{OrgID: org, MemberID: memberID(9), Role: domain.RoleMember},
			domain.MemberRoleChanged{
				OrgID:    org,
				MemberID: memberID(9),
				Role:     domain.RoleAdmin,
			},
			domain.MemberRemoved{OrgID: org, MemberID: memberID(3)},
		),
	)
	listed(5, 1, 9, 7)
	if got, err := s.Member(t.Context(), org, memberID(9)); err != nil ||
		got.Role != domain.RoleAdmin ||
		!got.JoinedAt.Equal(at) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, unknown := range []string{
		memberID(3), memberID(8), "x", "\x00", "\xff", memberID(5) + "\x00",
	} {
		if _, err := s.Members(t.Context(), org, 5, unknown); !isCode(
			err, domain.CodeInvalidRequest,
		) {
			t.Errorf("starting_after %q: %v", unknown, err)
		}
		if _, err := s.Member(t.Context(), org, unknown); !isCode(err, domain.CodeNotFound) {
			t.Errorf("member %q: %v", unknown, err)
		}
	}
	// Made, changed and removed by one batch.
	await(t, s, w.tell(
		t, subject, joined(org, 4, domain.RoleMember),
		domain.MemberRoleChanged{OrgID: org, MemberID: memberID(4), Role: domain.RoleAdmin},
		joined(org, 2, domain.RoleMember),
		domain.MemberRoleChanged{OrgID: org, MemberID: memberID(2), Role: domain.RoleOwner},
		domain.MemberRemoved{OrgID: org, MemberID: memberID(4)},
	))
	listed(5, 1, 2, 9, 7)
	if page, err := s.Members(t.Context(), siteID(1), 50, ""); err != nil || page.Data == nil ||
		len(page.Data) != 0 ||
		page.HasMore {
		t.Errorf("members of no organization: %v, %v", page, err)
	}
}

func TestPendingInvitationsAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open(t)
	w.project(t, s)
	now := time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)
	soon, late := now.Add(time.Hour), now.Add(48*time.Hour)
	subject := streams.OrgSubject(org)
	var facts []domain.Fact
	for _, n := range []int{4, 1, 8, 2, 9, 6} {
		expires := late
		if n == 8 {
			expires = soon
		}
		facts = append(facts, invited(org, n, expires, ""))
	}
	w.tellAt(t, now, subject, facts...)
	await(t, s, w.tell(t, streams.OrgSubject(other), invited(other, 7, late, "")))
	listed := func(at time.Time, want ...int) {
		t.Helper()
		ids := make([]string, 0, len(want))
		for _, n := range want {
			ids = append(ids, invitationID(n))
		}
		for limit := 1; limit <= len(want)+1; limit++ {
			got := everyPage(
				t,
				limit,
				func(limit int, after string) (domain.Page[domain.Invitation], error) {
					return s.Invitations(t.Context(), org, limit, after, at)
				},
				func(i domain.Invitation) string { return i.ID },
			)
			if !reflect.DeepEqual(got, ids) {
				t.Errorf("in pages of %d: %v, want %v", limit, got, ids)
			}
		}
	}
	listed(now, 6, 9, 2, 8, 1, 4)
	page, err := s.Invitations(t.Context(), org, 1, invitationID(2), now)
	want := domain.Invitation{
		ID: invitationID(
			8,
		), Email: "I8@example.org", Role: domain.RoleMember, Status: domain.InvitationPending,
		CreatedAt: now, ExpiresAt: soon,
	}
	if err != nil || !page.HasMore || page.Data[0] != want {
		t.Errorf("%+v, %v; want %+v", page, err, want)
	}
	listed(soon.Add(-time.Microsecond), 6, 9, 2, 8, 1, 4)
	listed(soon, 6, 9, 2, 1, 4)

	await(t, s, w.tell(
		t,
		subject,
		domain.MemberInvitationRevoked{OrgID: org, InvitationID: invitationID(9)},
		joined(org, 1, domain.RoleMember),
		domain.MemberInvitationAccepted{
			OrgID:        org,
			InvitationID: invitationID(1),
			MemberID:     memberID(1),
		},
		invited(org, 3, late, invitationID(4)),
		invited(org, 5, late, invitationID(3)), // made and replaced by one batch
	))
	listed(now, 5, 6, 2, 8)
	// One that is not pending any more still says where to go on.
	for n, want := range map[int]string{9: invitationID(2), 3: invitationID(6)} {
		if page, err := s.Invitations(t.Context(), org, 1, invitationID(n), now); err != nil ||
			len(page.Data) != 1 ||
			page.Data[0].ID != want {
			t.Errorf("after %d: %+v, %v", n, page, err)
		}
	}
	for _, unknown := range []string{
		invitationID(7), "x", "\x00", "\xff", invitationID(2) + "\x00",
	} {
		if _, err := s.Invitations(t.Context(), org, 5, unknown, now); !isCode(
			err, domain.CodeInvalidRequest,
		) {
			t.Errorf("starting_after %q: %v", unknown, err)
		}
	}
	if page, err := s.Invitations(t.Context(), org, 5, "", late); err != nil || page.Data == nil ||
		len(page.Data) != 0 ||
		page.HasMore {
		t.Errorf("when all have expired: %v, %v", page, err)
	}
}

func TestNamesAndRoomsOfDevices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open(t)
	w.project(t, s)
	w.site(t, org, 1)
	w.hub(t, org, 1, 1)
	w.hub(t, org, 2, 1)
	name, room := "Front door", "Hall"
	label := func(hub int, device int64, name, room *string) domain.Fact {
		return domain.DeviceLabeled{
			HubID:    hubID(hub),
			OrgID:    org,
			DeviceID: device,
			Name:     name,
			Room:     room,
		}
	}
	check := func(hub int, want map[int64]domain.DeviceLabel) {
		t.Helper()
		if got, err := s.DeviceLabels(t.Context(), org, hubID(hub)); err != nil ||
			!reflect.DeepEqual(got, want) {
			t.Errorf("hub %d: %v, %v; want %v", hub, got, err, want)
		}
	}
	subject := streams.HubSubject(hubID(1))
	w.tell(t, streams.HubSubject(hubID(2)), label(2, 3, &room, nil))
	await(t, s, w.tell(
		t, subject, label(1, 3, &name, nil), label(1, 3, &name, &room), label(1, -4, nil, &room),
		label(1, 5, &name, nil), label(1, 5, nil, nil),
	))
	check(1, map[int64]domain.DeviceLabel{3: {Name: &name, Room: &room}, -4: {Room: &room}})
	check(2, map[int64]domain.DeviceLabel{3: {Name: &room}})
	check(7, map[int64]domain.DeviceLabel{})
	if got, err := s.DeviceLabels(t.Context(), other, hubID(1)); err != nil || len(got) != 0 {
		t.Errorf("another organization reads %v, %v", got, err)
	}
	if got, err := s.DeviceLabels(t.Context(), org, "hub-\x00\xff"); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	await(
		t,
		s,
		w.tell(
			t, subject, domain.DeviceForgotten{HubID: hubID(1), OrgID: org, DeviceID: 3},
			label(1, 6, &name, nil),
		),
	)
	check(1, map[int64]domain.DeviceLabel{-4: {Room: &room}, 6: {Name: &name}})
	// A reset forgets what was set before it, and nothing else.
	await(t, s, w.tell(
		t,
		subject,
		label(1, 8, &name, nil),
		domain.HubLogBegun{
			HubID:   hubID(1),
			OrgID:   org,
			EpochID: domain.NewEpochID(0xb),
			OwnLog:  "second",
		},
		label(1, 6, nil, &room),
	))
	check(1, map[int64]domain.DeviceLabel{6: {Room: &room}})
	check(2, map[int64]domain.DeviceLabel{3: {Name: &room}})
}

// Whoever is told of a change reads it, whichever replica is asked.
func TestPeopleAndLabelsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	projecting, reading := w.open(t), w.open(t)
	w.project(t, projecting)
	var mailbox directorytest.Mailbox
	service := directory.NewService(w.dir, directory.ServiceConfig{
		Environment: domain.EnvironmentDev, AwaitReadModels: reading.WaitFor,
		Presence: directorytest.Presence{}, Mailer: &mailbox,
	})
	origin := domain.Origin{Actor: byOperator}
	orgID, ownerID, err := service.CreateOrg(t.Context(), origin, "Org", "owner@example.org")
	if err != nil {
		t.Fatal(err)
	}
	ids := func() (members, invitations []string) {
		t.Helper()
		m, err := reading.Members(t.Context(), orgID, 50, "")
		i, err2 := reading.Invitations(t.Context(), orgID, 50, "", time.Now())
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		return column(m.Data, func(m domain.Member) string { return m.ID + " " + string(m.Role) }),
			column(i.Data, func(i domain.Invitation) string { return i.ID })
	}
	owner := ownerID + " owner"
	shows := func(members, invitations []string) {
		t.Helper()
		if m, i := ids(); !reflect.DeepEqual(m, members) || !reflect.DeepEqual(i, invitations) {
			t.Errorf("members %v, invitations %v; want %v and %v", m, i, members, invitations)
		}
	}
	shows([]string{owner}, []string{})
	for range 10 {
		first, err := service.Invite(
			t.Context(), origin, orgID, "ann@example.org", domain.RoleMember,
		)
		if err != nil {
			t.Fatal(err)
		}
		shows([]string{owner}, []string{first.ID})
		second, err := service.Invite(
			t.Context(), origin, orgID, "ANN@example.org", domain.RoleAdmin,
		)
		if err != nil {
			t.Fatal(err)
		}
		shows([]string{owner}, []string{second.ID})
		accepted, err := service.AcceptInvitation(
			t.Context(), origin, mailbox.Mail(second.ID).Token,
		)
		if err != nil {
			t.Fatal(err)
		}
		shows([]string{owner, accepted.MemberID + " admin"}, []string{})
		if _, err := service.ChangeRole(t.Context(), origin, orgID, accepted.MemberID, domain.RoleMember); err != nil {
			t.Fatal(err)
		}
		shows([]string{owner, accepted.MemberID + " member"}, []string{})
		if err := service.RemoveMember(t.Context(), origin, orgID, accepted.MemberID); err != nil {
			t.Fatal(err)
		}
		shows([]string{owner}, []string{})
	}

	site, err := service.CreateSite(t.Context(), origin, orgID, "Site")
	if err != nil {
		t.Fatal(err)
	}
	if err := service.RegisterHub(t.Context(), origin, hubID(1), make([]byte, 32)); err != nil {
		t.Fatal(err)
	}
	if _, err := service.AddHub(t.Context(), origin, domain.AddHub{
		OrgID: orgID, HubID: hubID(1), SiteID: site.ID,
	}); err != nil {
		t.Fatal(err)
	}
	for n := range 10 {
		name := fmt.Sprint("Device ", n)
		set, err := service.LabelDevice(
			t.Context(),
			origin,
			domain.LabelDevice{
				OrgID:    orgID,
				HubID:    hubID(1),
				DeviceID: 3,
				SetName:  true,
				Name:     &name,
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := reading.DeviceLabels(t.Context(), orgID, hubID(1)); err != nil ||
			!reflect.DeepEqual(got[3], set) {
			t.Fatalf("%v, %v; want %v", got, err, set)
		}
		if err := service.ForgetDevices(t.Context(), origin, hubID(1), []int64{3}); err != nil {
			t.Fatal(err)
		}
		if got, err := reading.DeviceLabels(t.Context(), orgID, hubID(1)); err != nil ||
			len(got) != 0 {
			t.Fatalf("forgotten, and there is %v, %v", got, err)
		}
	}
}
