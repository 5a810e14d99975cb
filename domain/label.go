package domain

import (
	"maps"
	"slices"
)

// MaxDeviceLabels is how many devices of one hub may have a name or a room. It is far more than a
// radio network can have, and limits what a hub that invents devices can have stored.
const MaxDeviceLabels = 10_000

// LabelDevice is the command to set the name and room of a device. The caller has checked that the
// hub has the device.
type LabelDevice struct {
	OrgID    string
	HubID    HubID
	DeviceID int64
	// SetName is whether to change the name; a nil Name clears it. SetRoom and Room likewise.
	SetName bool
	Name    *string
	SetRoom bool
	Room    *string
}

// DecideLabelDevice sets the name and room of a device; it returns no event if nothing changes. It
// returns not_found for a hub that the organization does not have, and invalid_request for a label
// beyond MaxDeviceLabels.
func DecideLabelDevice(s HubState, o Origin, c LabelDevice) ([]Event, error) {
	if !s.ownedBy(c.OrgID) {
		return nil, ErrHubNotFound()
	}
	former, labeled := s.Labels[c.DeviceID]
	label := former
	if c.SetName {
		label.Name = c.Name
	}
	if c.SetRoom {
		label.Room = c.Room
	}
	if sameText(label.Name, former.Name) && sameText(label.Room, former.Room) {
		return nil, nil
	}
	if !labeled && len(s.Labels) >= MaxDeviceLabels {
		return nil, Errorf(
			CodeInvalidRequest, "device_id: at most %d devices of a hub can have a name or a room",
			len(s.Labels),
		)
	}
	return []Event{Record(o, DeviceLabeled{
		HubID: s.ID, OrgID: s.OrgID, DeviceID: c.DeviceID, Name: label.Name, Room: label.Room,
	})}, nil
}

// DecidePlaceDevices sets the room of devices of a hub, and fails as DecideLabelDevice does. A nil
// room clears it.
func DecidePlaceDevices(
	s HubState, o Origin, org string, deviceIDs []int64, room *string,
) (events []Event, err error) {
	for _, id := range deviceIDs {
		placed, err := DecideLabelDevice(s, o, LabelDevice{
			OrgID: org, HubID: s.ID, DeviceID: id, SetRoom: true, Room: room,
		})
		if err != nil {
			return nil, err
		}
		events = append(events, placed...)
	}
	return events, nil
}

// DecideForgetDevices removes the names, rooms and codes of devices that their hub has forgotten.
// Devices without any cause no event.
func DecideForgetDevices(s HubState, o Origin, deviceIDs []int64) []Event {
	var events []Event
	for i, id := range deviceIDs {
		_, labeled := s.Labels[id]
		known := labeled || len(s.CredentialsOf(id)) > 0
		if known && !slices.Contains(deviceIDs[:i], id) {
			events = append(
				events, Record(o, DeviceForgotten{HubID: s.ID, OrgID: s.OrgID, DeviceID: id}),
			)
		}
	}
	return events
}

// withLabel returns a copy of labels with the label of one device set, or removed if label is zero.
// The map labels stays as it is: an earlier state holds it.
func withLabel(
	labels map[int64]DeviceLabel, deviceID int64, label DeviceLabel,
) map[int64]DeviceLabel {
	labels = maps.Clone(labels)
	if label == (DeviceLabel{}) {
		delete(labels, deviceID)
		return labels
	}
	if labels == nil {
		labels = map[int64]DeviceLabel{}
	}
	labels[deviceID] = label
	return labels
}
