package domain_test

import (
	"encoding/json"
	"testing"

	"hubcloud/domain"
)

// A restored log keeps each former epoch up to the sequence that was restored, also after further
// restores.
func TestRestoreLog(t *testing.T) {
	t.Parallel()
	state := fold(t, domain.EvolveHub, registered, added, domain.HubLogBegun{
		HubID: hub, OrgID: orgA, EpochID: domain.NewEpochID(0xb), OwnLog: "second", Through: 16,
		After: 100,
	}, domain.DeviceLabeled{HubID: hub, OrgID: orgA, DeviceID: 3, Name: ptr("Front door")})

	for name, epoch := range map[string]domain.EpochID{
		"the same epoch": domain.NewEpochID(0xb),
		"no epoch":       {},
	} {
		if events, err := domain.DecideRestoreLog(state, origin, epoch, 0); err == nil {
			t.Errorf("%s: got events %v, want an error", name, events)
		}
	}
	_, err := domain.DecideRestoreLog(
		fold(t, domain.EvolveHub, registered), origin, domain.NewEpochID(0xc), 0,
	)
	checkDecision(t, nil, err, nil, domain.CodeNotFound)

	restore := func(epoch uint32, kept uint64) {
		t.Helper()
		events, err := domain.DecideRestoreLog(state, origin, domain.NewEpochID(epoch), kept)
		if err != nil {
			t.Fatal(err)
		}
		if state, err = domain.EvolveHub(state, events[0]); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		epoch  uint32
		kept   uint64
		after  uint64
		former string
		at     map[uint64]uint32
	}{
		{0xc, 200, 100, "0000000b:200", map[uint64]uint32{101: 0xb, 200: 0xb, 201: 0xc}},
		{
			0xd, 300, 100, "0000000b:200 0000000c:300",
			map[uint64]uint32{200: 0xb, 201: 0xc, 300: 0xc, 301: 0xd},
		},
		{
			0xe, 250, 100, "0000000b:200 0000000c:250 0000000d:250",
			map[uint64]uint32{200: 0xb, 250: 0xc, 251: 0xe},
		},
		{
			0xf, 0, 0, "0000000b:0 0000000c:0 0000000d:0 0000000e:0",
			map[uint64]uint32{0: 0xf, 1: 0xf},
		},
	} {
		restore(c.epoch, c.kept)
		epoch := state.Epoch
		if epoch.After != c.after || epoch.Former.String() != c.former {
			t.Errorf(
				"restored up to %d: got after %d, former %q; want %d, %q", c.kept, epoch.After,
				epoch.Former, c.after, c.former,
			)
		}
		for sequence, want := range c.at {
			if got := epoch.At(sequence); got != domain.NewEpochID(want) {
				t.Errorf("At(%d) = %s, want %08x", sequence, got, want)
			}
			id := epoch.At(sequence)
			if got, want := epoch.Has(sequence, id), sequence > c.after; got != want {
				t.Errorf("Has(%d, %s) = %v, want %v", sequence, id, got, want)
			}
		}
		if len(state.Labels) != 1 || state.OwnLog != "second" || state.OwnLogThrough != 16 {
			t.Errorf("a restore changed the rest of the state to %+v", state)
		}
	}
	former, ok := state.Epoch.Former.Find(domain.NewEpochID(0xc))
	if !ok || former.Through != 0 {
		t.Errorf("Find(0000000c) = %+v, %v; want through 0, true", former, ok)
	}
	for n := range 20 {
		restore(uint32(0x100+n), uint64(n))
	}
	if got := len(state.Epoch.Former); got != 8 {
		t.Errorf("after 24 restores, %d former epochs; want 8", got)
	}
	state = fold(
		t, domain.EvolveHub, registered, added,
		domain.HubLogRestored{
			HubID: hub, OrgID: orgA, EpochID: domain.NewEpochID(0xaa), Former: state.Epoch.Former,
		},
		domain.HubLogBegun{
			HubID: hub, OrgID: orgA, EpochID: domain.NewEpochID(0xab), OwnLog: "third", After: 9,
		},
	)
	if got := state.Epoch.Former; got != nil {
		t.Errorf("former epochs of a log that was begun after the restore: %q, want none", got)
	}
}

// Facts contain epochs as text. A stored fact or checkpoint without the text has no epoch.
func TestEpochsAsJSON(t *testing.T) {
	t.Parallel()
	type stored struct {
		ID     domain.EpochID      `json:"id,omitzero"`
		Former domain.FormerEpochs `json:"former"`
	}
	for text, want := range map[string]string{
		`{"id":"0a1b2c3d","former":"0000000b:200 0000000c:0"}`: "",
		`{"former":""}`:                      "",
		`{"id":"","former":""}`:              `{"former":""}`,
		`{"former":"x 0000000b 0000000c:7"}`: `{"former":"0000000c:7"}`,
	} {
		if want == "" {
			want = text
		}
		var s stored
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := json.Marshal(s); err != nil || string(got) != want {
			t.Errorf("%s: written again as %s, %v; want %s", text, got, err, want)
		}
	}
	for _, bad := range []string{"", "a", "0000000", "000000001", "0000000g"} {
		if got, err := domain.ParseEpochID(bad); err == nil {
			t.Errorf("ParseEpochID(%q) = %s; want an error", bad, got)
		}
	}
}

// Unreadable text must not become the epoch of an event.
func FuzzParseFormerEpochs(f *testing.F) {
	f.Add("0000000b:200 0000000c:0", uint64(7))
	f.Add("x", uint64(0))
	f.Fuzz(func(t *testing.T, text string, sequence uint64) {
		former := domain.ParseFormerEpochs(text)
		got, want := domain.ParseFormerEpochs(former.String()).String(), former.String()
		if got != want {
			t.Errorf("%q: got %q after a round trip, want %q", text, got, want)
		}
		epoch := domain.Epoch{ID: domain.NewEpochID(1), Former: former}
		if id := epoch.At(sequence); id != epoch.ID {
			if _, ok := former.Find(id); !ok {
				t.Errorf("At(%d) = %s, want one of %q", sequence, id, text)
			}
		}
	})
}
