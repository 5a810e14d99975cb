package portal

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"hubcloud/domain"
)

// reported are the states of the read models, which are tried in package readmodel.
type reported []domain.ReportedState

func (reported) FindDevices(
	context.Context, string, string, []string, int,
) ([]domain.FoundDevice, error) {
	return nil, nil
}

func (r reported) States(
	_ context.Context, _ domain.Reach, _ domain.StateFilter, limit int, after domain.StatePosition,
) (domain.StatesPage, error) {
	rest := slices.DeleteFunc(slices.Clone(r), func(s domain.ReportedState) bool {
		return s.DeviceID < after.DeviceID ||
			s.DeviceID == after.DeviceID && s.Channel.Endpoint <= after.Endpoint && after.Key != ""
	})
	page := domain.StatesPage{}
	page.Data = rest[:min(limit, len(rest))]
	return page, nil
}

func (reported) StatesNeedingAttention(
	context.Context, string, string, domain.HubID,
) ([]domain.ReportedState, error) {
	return nil, nil
}

// TestLastDevices checks that the devices of a hub that does not answer have their last known
// values and no controls, and that texts have their names and units.
func TestLastDevices(t *testing.T) {
	t.Parallel()
	unit, door, hall := "°C", "Front door", "Hall"
	at := "2026-01-02T03:04:05.000000Z"
	r := newTestLive(t, Config{Reported: reported{
		{
			DeviceID: 1, Name: &door, Room: &hall,
			Channel: domain.Channel{
				Key: "lock", Value: json.RawMessage(`true`), Writable: true, ObservedAt: &at,
			},
		},
		{DeviceID: 2, Channel: domain.Channel{
			Key: "temperature", Value: json.RawMessage(`7`), Unit: &unit,
		}},
		{DeviceID: 2, Channel: domain.Channel{Key: "battery", Value: json.RawMessage(`9`)}},
	}})
	r.errs[0] = domain.Errorf(domain.CodeHubOffline, "offline")
	list, err := r.live.lastDeviceList(t.Context(), "org", hubA, devicesRequest{})
	if err != nil || list.Total != 2 || len(list.Rooms) != 2 || list.Rooms[0].Name != "Hall" {
		t.Fatalf("got %+v, %v, want two devices, the first in the hall", list, err)
	}
	lock, second := list.Rooms[0].Devices[0].Channels[0], list.Rooms[1].Devices[0]
	if lock.Text != "locked" || !lock.Old || lock.Control.Kind != "" || lock.ObservedAt.IsZero() {
		t.Errorf("got %+v, want an old value with its time and no control", lock)
	}
	if second.Name != "Device 2" || len(second.Channels) != 2 || second.Channels[0].Text != "7 °C" {
		t.Errorf("got %+v, want device 2 with 7 °C", second)
	}
	cellar := "Cellar"
	r.labels = map[int64]domain.DeviceLabel{2: {Name: &cellar}, 3: {Name: &hall}}
	infos, err := r.live.deviceInfos(t.Context(), "org", hubA)
	if err != nil || infos[1].Name != "Front door" || infos[2].Units["temperature/0"] != "°C" ||
		infos[2].Name != "Cellar" || infos[3].Name != "Hall" {
		t.Errorf("got %+v, %v, want names and units, and the names that members set", infos, err)
	}
}
