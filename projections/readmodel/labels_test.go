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
			t.Context(), origin, orgID, "ann@example.org", domain.AccessMember,
		)
		if err != nil {
			t.Fatal(err)
		}
		shows([]string{owner}, []string{first.ID})
		second, err := service.Invite(
			t.Context(), origin, orgID, "ANN@example.org", domain.AccessAdmin,
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
