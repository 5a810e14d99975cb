package domain_test

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"

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
		"the name stays": {both, domain.LabelDevice{SetRoom: true}, []domain.Fact{labeled(3, ptr("Door"), nil)}, ""},
		"clear both": {
			both, domain.LabelDevice{SetName: true, SetRoom: true}, []domain.Fact{labeled(3, nil, nil)}, "",
		},
		"clear nothing": {none, domain.LabelDevice{SetName: true, SetRoom: true}, nil, ""},
		"as it is": {
			both,
			domain.LabelDevice{SetName: true, Name: ptr("Door"), SetRoom: true, Room: ptr("Hall")},
			nil, "",
		},
		"nothing set":   {both, domain.LabelDevice{Name: ptr("Gate"), Room: ptr("Attic")}, nil, ""},
		"another's hub": {both, domain.LabelDevice{OrgID: orgB, SetName: true}, nil, domain.CodeNotFound},
		"a hub without organization": {
			fold(t, domain.EvolveHub, registered), domain.LabelDevice{SetName: true}, nil,
			domain.CodeNotFound,
		},
		"an unknown hub": {domain.HubState{}, domain.LabelDevice{SetName: true}, nil, domain.CodeNotFound},
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
	both := fold(t, domain.EvolveHub, registered, added, labeled(3, ptr("Door"), nil), labeled(4, nil, ptr("Hall")))
	checkDecision(t, domain.DecideForgetDevices(both, origin, []int64{5, 3, 3}), nil, []domain.Fact{forgotten}, "")
	checkDecision(t, domain.DecideForgetDevices(both, origin, []int64{5}), nil, nil, "")
	checkDecision(t, domain.DecideForgetDevices(domain.HubState{}, origin, []int64{3}), nil, nil, "")
	after := fold(t, domain.EvolveHub, registered, added, labeled(3, ptr("Door"), nil), labeled(4, nil, ptr("Hall")),
		forgotten)
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

// After any sequence of commands the state has the labels that were set last. States that were
// returned do not change.
func TestLastLabelsWin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		state := fold(t, domain.EvolveHub, registered, added)
		want := map[int64]domain.DeviceLabel{}
		text := rapid.SampledFrom([]*string{nil, ptr("a"), ptr("b")})
		for step := range rapid.IntRange(1, 40).Draw(rt, "steps") {
			before, copied := state, maps.Clone(state.Labels)
			device := rapid.Int64Range(-1, 3).Draw(rt, "device")
			var events []domain.Event
			var err error
			switch rapid.IntRange(0, 5).Draw(rt, "command") {
			case 0:
				events = domain.DecideForgetDevices(state, origin, []int64{device, device + 1})
				delete(want, device)
				delete(want, device+1)
			case 1:
				events, err = domain.DecideBeginEpoch(state, origin,
					domain.BeginEpoch{OwnLog: fmt.Sprint("log ", step)}, domain.NewEpochID(uint32(16+step)),
					domain.HubLimit{})
				if len(events) > 0 {
					clear(want)
				}
			default:
				c := domain.LabelDevice{
					OrgID: orgA, HubID: hub, DeviceID: device,
					SetName: rapid.Bool().Draw(rt, "set name"), Name: text.Draw(rt, "name"),
					SetRoom: rapid.Bool().Draw(rt, "set room"), Room: text.Draw(rt, "room"),
				}
				events, err = domain.DecideLabelDevice(state, origin, c)
				label := want[device]
				if c.SetName {
					label.Name = c.Name
				}
				if c.SetRoom {
					label.Room = c.Room
				}
				if want[device] = label; label == (domain.DeviceLabel{}) {
					delete(want, device)
				}
			}
			if err != nil {
				rt.Fatal(err)
			}
			for _, e := range events {
				if state, err = domain.EvolveHub(state, e); err != nil {
					rt.Fatal(err)
				}
			}
			same := func(a, b domain.DeviceLabel) bool {
				return sameText(a.Name, b.Name) && sameText(a.Room, b.Room)
			}
			if !maps.EqualFunc(state.Labels, want, same) {
				rt.Fatalf("got labels %v, want %v", state.Labels, want)
			}
			if !maps.EqualFunc(before.Labels, copied, same) {
				rt.Fatal("a returned state has changed")
			}
		}
	})
}

func sameText(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }
