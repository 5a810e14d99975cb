package domain

import (
	"maps"
	"slices"
)

// MaxDeviceLabels is how many devices of one hub may have a name or a room. Far more than a radio
// network has devices; it bounds what a hub that makes devices up can leave behind.
const MaxDeviceLabels = 10_000

// LabelDevice asks for a name and a room of a device of a hub that the organization has. That the
// hub has the device has been asked before.
type LabelDevice struct {
	OrgID    string
	HubID    HubID
	DeviceID int64
	// SetName says whether Name counts; a nil Name then clears it. The same goes for SetRoom and
	// Room.
	SetName bool
	Name    *string
	SetRoom bool
	Room    *string
}

// DecideLabelDevice names and places a device. What is so already is no event. A hub that the
// organization does not have is not_found; a label more than MaxDeviceLabels is an invalid_request.
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
	return []Event{
		Record(
			o,
			DeviceLabeled{
				HubID:    s.ID,
				OrgID:    s.OrgID,
				DeviceID: c.DeviceID,
				Name:     label.Name,
				Room:     label.Room,
			},
		),
	}, nil
}

// DecideForgetDevices forgets the names and rooms of devices that their hub has forgotten; a device
// without any is no event.
func DecideForgetDevices(s HubState, o Origin, deviceIDs []int64) []Event {
	var events []Event
	for i, id := range deviceIDs {
		if _, labeled := s.Labels[id]; labeled && !slices.Contains(deviceIDs[:i], id) {
			events = append(
				events, Record(o, DeviceForgotten{HubID: s.ID, OrgID: s.OrgID, DeviceID: id}),
			)
		}
	}
	return events
}

// withLabel gives the labels with one changed, which the zero label removes. The former map may be
// in someone's hands: it is not touched.
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
