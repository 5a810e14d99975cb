package readmodel_test

import (
	"reflect"
	"testing"

	"hubcloud/domain"
	"hubcloud/projections/projectionstest"
	"hubcloud/streams"
)

func TestNamesAndRoomsOfDevices(t *testing.T) {
	t.Parallel()
	w, s := projectionstest.NewProjected(t)
	w.AddSite(t, org, 1)
	w.AddHub(t, org, 1, 1)
	w.AddHub(t, org, 2, 1)
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
			t.Errorf("labels of hub %d: got %v, %v, want %v", hub, got, err, want)
		}
	}
	subject := streams.HubSubject(hubID(1))
	w.Append(t, streams.HubSubject(hubID(2)), label(2, 3, &room, nil))
	w.Do(
		t, s, subject, label(1, 3, &name, nil), label(1, 3, &name, &room), label(1, -4, nil, &room),
		label(1, 5, &name, nil), label(1, 5, nil, nil),
	)
	check(1, map[int64]domain.DeviceLabel{3: {Name: &name, Room: &room}, -4: {Room: &room}})
	check(2, map[int64]domain.DeviceLabel{3: {Name: &room}})
	check(7, map[int64]domain.DeviceLabel{})
	if got, err := s.DeviceLabels(t.Context(), other, hubID(1)); err != nil ||
		len(got) != 0 {
		t.Errorf("labels for another organization: got %v, %v, want none", got, err)
	}
	if got, err := s.DeviceLabels(t.Context(), org, "hub-\x00\xff"); err != nil || len(got) != 0 {
		t.Errorf("labels of an unknown hub: got %v, %v, want none", got, err)
	}
	w.Do(
		t, s, subject, domain.DeviceForgotten{HubID: hubID(1), OrgID: org, DeviceID: 3},
		label(1, 6, &name, nil),
	)
	check(1, map[int64]domain.DeviceLabel{-4: {Room: &room}, 6: {Name: &name}})
	// A reset deletes the labels from before it, and only those.
	w.Do(
		t, s, subject, label(1, 8, &name, nil),
		domain.HubLogBegun{
			HubID: hubID(1), OrgID: org, EpochID: domain.NewEpochID(0xb), OwnLog: "second",
		},
		label(1, 6, nil, &room),
	)
	check(1, map[int64]domain.DeviceLabel{6: {Room: &room}})
	check(2, map[int64]domain.DeviceLabel{3: {Name: &room}})
}
