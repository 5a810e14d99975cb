package domain_test

import (
	"testing"

	"hubcloud/domain"
)

func labeled(device int64, name, room *string) domain.DeviceLabeled {
	return domain.DeviceLabeled{HubID: hub, OrgID: orgA, DeviceID: device, Name: name, Room: room}
}

func TestLabelDevice(t *testing.T) {
	t.Parallel()
	none := fold(t, domain.EvolveHub, registered, added)
	both := fold(t, domain.EvolveHub, registered, added, labeled(3, ptr("Door"), ptr("Hall")))
	for name, c := range map[string]struct {
		state domain.HubState
		cmd   domain.LabelDevice
		facts []domain.Fact
		code  domain.Code
	}{
		"name": {
			none, domain.LabelDevice{SetName: true, Name: ptr("Door")},
			[]domain.Fact{labeled(3, ptr("Door"), nil)}, "",
		},
		"room": {
			none, domain.LabelDevice{SetRoom: true, Room: ptr("Hall")},
			[]domain.Fact{labeled(3, nil, ptr("Hall"))}, "",
		},
		"the room stays": {
			both, domain.LabelDevice{SetName: true, Name: ptr("Gate")},
			[]domain.Fact{labeled(3, ptr("Gate"), ptr("Hall"))}, "",
		},
		"the name stays": {
			both, domain.LabelDevice{SetRoom: true}, []domain.Fact{labeled(3, ptr("Door"), nil)},
			"",
		},
		"clear both": {
			both, domain.LabelDevice{SetName: true, SetRoom: true},
			[]domain.Fact{labeled(3, nil, nil)}, "",
		},
		"clear nothing": {none, domain.LabelDevice{SetName: true, SetRoom: true}, nil, ""},
		"as it is": {
			both,
			domain.LabelDevice{SetName: true, Name: ptr("Door"), SetRoom: true, Room: ptr("Hall")},
			nil, "",
		},
		"nothing set": {
			both, domain.LabelDevice{Name: ptr("Gate"), Room: ptr("Attic")}, nil, "",
		},
		"another's hub": {
			both, domain.LabelDevice{OrgID: orgB, SetName: true}, nil, domain.CodeNotFound,
		},
		"a hub without organization": {
			fold(t, domain.EvolveHub, registered), domain.LabelDevice{SetName: true}, nil,
			domain.CodeNotFound,
		},
		"an unknown hub": {
			domain.HubState{}, domain.LabelDevice{SetName: true}, nil, domain.CodeNotFound,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.cmd.HubID, c.cmd.DeviceID = hub, 3
			if c.cmd.OrgID == "" {
				c.cmd.OrgID = orgA
			}
			events, err := domain.DecideLabelDevice(c.state, origin, c.cmd)
			checkDecision(t, events, err, c.facts, c.code)
		})
	}
}

func TestForgetDevices(t *testing.T) {
	t.Parallel()
	forgotten := domain.DeviceForgotten{HubID: hub, OrgID: orgA, DeviceID: 3}
	both := fold(
		t, domain.EvolveHub, registered, added, labeled(3, ptr("Door"), nil),
		labeled(4, nil, ptr("Hall")),
	)
	checkDecision(
		t, domain.DecideForgetDevices(both, origin, []int64{5, 3, 3}), nil,
		[]domain.Fact{forgotten}, "",
	)
	checkDecision(t, domain.DecideForgetDevices(both, origin, []int64{5}), nil, nil, "")
	checkDecision(
		t, domain.DecideForgetDevices(domain.HubState{}, origin, []int64{3}), nil, nil, "",
	)
	after := fold(
		t, domain.EvolveHub, registered, added, labeled(3, ptr("Door"), nil),
		labeled(4, nil, ptr("Hall")), forgotten,
	)
	if len(after.Labels) != 1 || *after.Labels[4].Room != "Hall" {
		t.Errorf("got labels %v", after.Labels)
	}
	checkDecision(t, domain.DecideForgetDevices(after, origin, []int64{3}), nil, nil, "")
}

// A hub that invents devices must not fill the directory's memory.
func TestLabelsAreBounded(t *testing.T) {
	t.Parallel()
	full := fold(t, domain.EvolveHub, registered, added)
	full.Labels = map[int64]domain.DeviceLabel{}
	for device := range int64(domain.MaxDeviceLabels) {
		full.Labels[device] = domain.DeviceLabel{Name: ptr("x")}
	}
	more := domain.LabelDevice{
		OrgID:    orgA,
		HubID:    hub,
		DeviceID: domain.MaxDeviceLabels,
		SetName:  true,
		Name:     ptr("y"),
	}
	events, err := domain.DecideLabelDevice(full, origin, more)
	checkDecision(t, events, err, nil, domain.CodeInvalidRequest)
	more.DeviceID = 0
	events, err = domain.DecideLabelDevice(full, origin, more)
	checkDecision(t, events, err, []domain.Fact{labeled(0, ptr("y"), nil)}, "")
}
