package readmodel_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/projectionstest"
	"hubcloud/streams"
	"hubcloud/streams/directory"
	"hubcloud/streams/installationtest"
)

// everyPage returns the ids of a list that is read in pages.
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
			t.Fatalf("page of %d: got %+v, want a full page", limit, got)
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
	w := projectionstest.New(t)
	s := w.OpenStore(t)
	w.Project(t, s)
	// All in the same microsecond, with unordered ids.
	at := time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)
	subject := streams.OrgSubject(org)
	w.AppendAt(
		t, at, subject, domain.OrgCreated{OrgID: org, Name: "Org"},
		projectionstest.MemberAdded(org, 9, domain.RoleOwner),
		projectionstest.MemberAdded(org, 5, domain.RoleMember),
	)
	w.AppendAt(
		t, at, subject, projectionstest.MemberAdded(org, 7, domain.RoleAdmin),
		projectionstest.MemberAdded(org, 1, domain.RoleOwner),
		projectionstest.MemberAdded(org, 3, domain.RoleMember),
	)
	projectionstest.Await(
		t,
		s,
		w.Append(
			t, streams.OrgSubject(other), projectionstest.MemberAdded(other, 8, domain.RoleOwner),
		),
	)

	members := func(limit int, after string) (domain.Page[domain.Member], error) {
		return s.Members(t.Context(), org, limit, after)
	}
	id := func(m domain.Member) string { return m.ID }
	listed := func(want ...int) {
		t.Helper()
		ids := make([]string, 0, len(want))
		for _, n := range want {
			ids = append(ids, projectionstest.MemberID(n))
		}
		for limit := 1; limit <= len(want)+1; limit++ {
			if got := everyPage(t, limit, members, id); !reflect.DeepEqual(got, ids) {
				t.Errorf("pages of %d: got %v, want %v", limit, got, ids)
			}
		}
	}
	listed(9, 1, 5, 7, 3)
	want := domain.Member{
		ID:       projectionstest.MemberID(7),
		Email:    "P7@example.org",
		Role:     domain.RoleAdmin,
		JoinedAt: at,
	}
	if got, err := s.Member(t.Context(), org, projectionstest.MemberID(7)); err != nil ||
		got != want {
		t.Errorf("Member: got %+v, %v, want %+v", got, err, want)
	}

	// A new owner is listed among the owners by the order of joining.
	projectionstest.Await(
		t,
		s,
		w.Append(
			t,
			subject,
			domain.MemberRoleChanged{
				OrgID:    org,
				MemberID: projectionstest.MemberID(5),
				Role:     domain.RoleOwner,
			},
		),
	)
	listed(9, 5, 1, 7, 3)
	projectionstest.Await(
		t,
		s,
		w.Append(
			t,
			subject,
			domain.MemberRoleChanged{
				OrgID:    org,
				MemberID: projectionstest.MemberID(9),
				Role:     domain.RoleMember,
			},
			domain.MemberRoleChanged{
				OrgID:    org,
				MemberID: projectionstest.MemberID(9),
				Role:     domain.RoleAdmin,
			},
			domain.MemberRemoved{OrgID: org, MemberID: projectionstest.MemberID(3)},
		),
	)
	listed(5, 1, 9, 7)
	if got, err := s.Member(t.Context(), org, projectionstest.MemberID(9)); err != nil ||
		got.Role != domain.RoleAdmin ||
		!got.JoinedAt.Equal(at) {
		t.Errorf("Members: got %+v, %v", got, err)
	}
	for _, unknown := range []string{
		projectionstest.MemberID(3), projectionstest.MemberID(8), "x", "\x00", "\xff",
		projectionstest.MemberID(5) + "\x00",
	} {
		if _, err := s.Members(t.Context(), org, 5, unknown); !isCode(
			err, domain.CodeInvalidRequest,
		) {
			t.Errorf("starting_after %q: got %v, want invalid_request", unknown, err)
		}
		if _, err := s.Member(t.Context(), org, unknown); !isCode(err, domain.CodeNotFound) {
			t.Errorf("Member(%q): got %v, want not_found", unknown, err)
		}
	}
	// Added, changed and removed in one batch.
	projectionstest.Await(t, s, w.Append(
		t,
		subject,
		projectionstest.MemberAdded(org, 4, domain.RoleMember),
		domain.MemberRoleChanged{
			OrgID:    org,
			MemberID: projectionstest.MemberID(4),
			Role:     domain.RoleAdmin,
		},
		projectionstest.MemberAdded(org, 2, domain.RoleMember),
		domain.MemberRoleChanged{
			OrgID:    org,
			MemberID: projectionstest.MemberID(2),
			Role:     domain.RoleOwner,
		},
		domain.MemberRemoved{OrgID: org, MemberID: projectionstest.MemberID(4)},
	))
	listed(5, 1, 2, 9, 7)
	if page, err := s.Members(t.Context(), projectionstest.SiteID(1), 50, ""); err != nil ||
		page.Data == nil ||
		len(page.Data) != 0 ||
		page.HasMore {
		t.Errorf("members of an unknown organization: got %v, %v, want none", page, err)
	}
}

func TestPendingInvitationsAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	s := w.OpenStore(t)
	w.Project(t, s)
	now := time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)
	soon, late := now.Add(time.Hour), now.Add(48*time.Hour)
	subject := streams.OrgSubject(org)
	var facts []domain.Fact
	for _, n := range []int{4, 1, 8, 2, 9, 6} {
		expires := late
		if n == 8 {
			expires = soon
		}
		facts = append(facts, projectionstest.MemberInvited(org, n, expires, ""))
	}
	w.AppendAt(t, now, subject, facts...)
	projectionstest.Await(
		t, s,
		w.Append(t, streams.OrgSubject(other), projectionstest.MemberInvited(other, 7, late, "")),
	)
	listed := func(at time.Time, want ...int) {
		t.Helper()
		ids := make([]string, 0, len(want))
		for _, n := range want {
			ids = append(ids, projectionstest.InvitationID(n))
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
				t.Errorf("pages of %d: got %v, want %v", limit, got, ids)
			}
		}
	}
	listed(now, 6, 9, 2, 8, 1, 4)
	page, err := s.Invitations(t.Context(), org, 1, projectionstest.InvitationID(2), now)
	want := domain.Invitation{
		ID: projectionstest.InvitationID(
			8,
		), Email: "I8@example.org", Role: domain.RoleMember, Status: domain.InvitationPending,
		CreatedAt: now, ExpiresAt: soon,
	}
	if err != nil || !page.HasMore || page.Data[0] != want {
		t.Errorf("Invitations: got %+v, %v, want %+v", page, err, want)
	}
	listed(soon.Add(-time.Microsecond), 6, 9, 2, 8, 1, 4)
	listed(soon, 6, 9, 2, 1, 4)

	projectionstest.Await(t, s, w.Append(
		t,
		subject,
		domain.MemberInvitationRevoked{OrgID: org, InvitationID: projectionstest.InvitationID(9)},
		projectionstest.MemberAdded(org, 1, domain.RoleMember),
		domain.MemberInvitationAccepted{
			OrgID:        org,
			InvitationID: projectionstest.InvitationID(1),
			MemberID:     projectionstest.MemberID(1),
		},
		projectionstest.MemberInvited(org, 3, late, projectionstest.InvitationID(4)),
		// created and replaced in one batch
		projectionstest.MemberInvited(org, 5, late, projectionstest.InvitationID(3)),
	))
	listed(now, 5, 6, 2, 8)
	// An invitation that is no longer pending is a valid start.
	for n, want := range map[int]string{
		9: projectionstest.InvitationID(2), 3: projectionstest.InvitationID(6),
	} {
		if page, err := s.Invitations(
			t.Context(), org, 1, projectionstest.InvitationID(n), now,
		); err != nil ||
			len(page.Data) != 1 ||
			page.Data[0].ID != want {
			t.Errorf("after invitation %d: got %+v, %v", n, page, err)
		}
	}
	for _, unknown := range []string{
		projectionstest.InvitationID(7), "x", "\x00", "\xff",
		projectionstest.InvitationID(2) + "\x00",
	} {
		if _, err := s.Invitations(t.Context(), org, 5, unknown, now); !isCode(
			err, domain.CodeInvalidRequest,
		) {
			t.Errorf("starting_after %q: got %v, want invalid_request", unknown, err)
		}
	}
	if page, err := s.Invitations(t.Context(), org, 5, "", late); err != nil || page.Data == nil ||
		len(page.Data) != 0 ||
		page.HasMore {
		t.Errorf("expired invitations: got %v, %v, want none", page, err)
	}
}

func TestNamesAndRoomsOfDevices(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	s := w.OpenStore(t)
	w.Project(t, s)
	w.AddSite(t, org, 1)
	w.AddHub(t, org, 1, 1)
	w.AddHub(t, org, 2, 1)
	name, room := "Front door", "Hall"
	label := func(hub int, device int64, name, room *string) domain.Fact {
		return domain.DeviceLabeled{
			HubID:    projectionstest.HubID(hub),
			OrgID:    org,
			DeviceID: device,
			Name:     name,
			Room:     room,
		}
	}
	check := func(hub int, want map[int64]domain.DeviceLabel) {
		t.Helper()
		if got, err := s.DeviceLabels(t.Context(), org, projectionstest.HubID(hub)); err != nil ||
			!reflect.DeepEqual(got, want) {
			t.Errorf("labels of hub %d: got %v, %v, want %v", hub, got, err, want)
		}
	}
	subject := streams.HubSubject(projectionstest.HubID(1))
	w.Append(t, streams.HubSubject(projectionstest.HubID(2)), label(2, 3, &room, nil))
	projectionstest.Await(t, s, w.Append(
		t, subject, label(1, 3, &name, nil), label(1, 3, &name, &room), label(1, -4, nil, &room),
		label(1, 5, &name, nil), label(1, 5, nil, nil),
	))
	check(1, map[int64]domain.DeviceLabel{3: {Name: &name, Room: &room}, -4: {Room: &room}})
	check(2, map[int64]domain.DeviceLabel{3: {Name: &room}})
	check(7, map[int64]domain.DeviceLabel{})
	if got, err := s.DeviceLabels(t.Context(), other, projectionstest.HubID(1)); err != nil ||
		len(got) != 0 {
		t.Errorf("labels for another organization: got %v, %v, want none", got, err)
	}
	if got, err := s.DeviceLabels(t.Context(), org, "hub-\x00\xff"); err != nil || len(got) != 0 {
		t.Errorf("labels of an unknown hub: got %v, %v, want none", got, err)
	}
	projectionstest.Await(
		t,
		s,
		w.Append(
			t, subject,
			domain.DeviceForgotten{HubID: projectionstest.HubID(1), OrgID: org, DeviceID: 3},
			label(1, 6, &name, nil),
		),
	)
	check(1, map[int64]domain.DeviceLabel{-4: {Room: &room}, 6: {Name: &name}})
	// A reset deletes the labels from before it, and only those.
	projectionstest.Await(t, s, w.Append(
		t,
		subject,
		label(1, 8, &name, nil),
		domain.HubLogBegun{
			HubID:   projectionstest.HubID(1),
			OrgID:   org,
			EpochID: domain.NewEpochID(0xb),
			OwnLog:  "second",
		},
		label(1, 6, nil, &room),
	))
	check(1, map[int64]domain.DeviceLabel{6: {Room: &room}})
	check(2, map[int64]domain.DeviceLabel{3: {Name: &room}})
}

// A caller that got the answer to a change reads the change on every replica.
func TestReadsFollowWritesOfPeopleAndLabels(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	projecting, reading := w.OpenStore(t), w.OpenStore(t)
	w.Project(t, projecting)
	var mailbox installationtest.Mailbox
	service := directory.NewService(w.Directory, directory.ServiceConfig{
		Environment: domain.EnvironmentDev, AwaitReadModels: reading.WaitFor,
		Presence: installationtest.Presence{}, Mailer: &mailbox,
	})
	origin := domain.Origin{Actor: projectionstest.Operator}
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
		members, invitations = []string{}, []string{}
		for _, member := range m.Data {
			members = append(members, member.ID+" "+string(member.Role))
		}
		for _, invitation := range i.Data {
			invitations = append(invitations, invitation.ID)
		}
		return members, invitations
	}
	owner := ownerID + " owner"
	shows := func(members, invitations []string) {
		t.Helper()
		if m, i := ids(); !reflect.DeepEqual(m, members) || !reflect.DeepEqual(i, invitations) {
			t.Errorf(
				"got members %v and invitations %v, want %v and %v", m, i, members, invitations,
			)
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
		if _, err := service.ChangeRole(
			t.Context(), origin, orgID, accepted.MemberID, domain.RoleMember,
		); err != nil {
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
	if err := service.RegisterHub(
		t.Context(), origin, projectionstest.HubID(1), make([]byte, 32),
	); err != nil {
		t.Fatal(err)
	}
	if _, err := service.AddHub(t.Context(), origin, domain.AddHub{
		OrgID: orgID, HubID: projectionstest.HubID(1), SiteID: site.ID,
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
				HubID:    projectionstest.HubID(1),
				DeviceID: 3,
				SetName:  true,
				Name:     &name,
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := reading.DeviceLabels(
			t.Context(), orgID, projectionstest.HubID(1),
		); err != nil ||
			!reflect.DeepEqual(got[3], set) {
			t.Fatalf("labels: got %v, %v, want %v", got, err, set)
		}
		if err := service.ForgetDevices(t.Context(), origin, projectionstest.HubID(1), []int64{
			3,
		}); err != nil {
			t.Fatal(err)
		}
		if got, err := reading.DeviceLabels(
			t.Context(), orgID, projectionstest.HubID(1),
		); err != nil ||
			len(got) != 0 {
			t.Fatalf("labels of a forgotten device: got %v, %v, want none", got, err)
		}
	}
}
