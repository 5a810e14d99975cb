package domain_test

import (
	"fmt"
	"testing"

	"hubcloud/domain"
)

// A log that was restored has its former tags up to where each was restored, whatever was restored
// after it, and none behind.
func TestRestoreLog(t *testing.T) {
	t.Parallel()
	state := fold(t, domain.EvolveHub, registered, added, domain.HubLogBegun{
		HubID: hub, OrgID: orgA, Incarnation: "0000000b", Log: "second", Through: 16, After: 100,
	}, domain.DeviceLabeled{HubID: hub, OrgID: orgA, DeviceID: 3, Name: ptr("Front door")})

	if _, err := domain.DecideRestoreLog(state, origin, "0000000b", 0); err == nil {
		t.Error("the log kept its tag")
	}
	_, err := domain.DecideRestoreLog(fold(t, domain.EvolveHub, registered), origin, "0000000c", 0)
	decided(t, nil, err, nil, domain.CodeNotFound)

	restore := func(incarnation string, kept uint64) {
		t.Helper()
		events, err := domain.DecideRestoreLog(state, origin, incarnation, kept)
		if err != nil {
			t.Fatal(err)
		}
		if state, err = domain.EvolveHub(state, events[0]); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(after uint64, former domain.FormerLogs, tags map[uint64]string) {
		t.Helper()
		if state.LogAfter != after || state.Former != former || len(state.Labels) != 1 ||
			state.Log != "second" ||
			state.LogThrough != 16 {
			t.Errorf("folded to %+v", state)
		}
		for sequence, want := range tags {
			if got := state.Former.At(sequence, state.Incarnation); got != want {
				t.Errorf("sequence %d has the tag %s, want %s", sequence, got, want)
			}
		}
	}
	restore("0000000c", 200)
	holds(100, "0000000b:200", map[uint64]string{101: "0000000b", 200: "0000000b", 201: "0000000c"})
	restore("0000000d", 300)
	holds(
		100, "0000000b:200 0000000c:300",
		map[uint64]string{200: "0000000b", 201: "0000000c", 300: "0000000c", 301: "0000000d"},
	)
	restore("0000000e", 250)
	holds(
		100, "0000000b:200 0000000c:250 0000000d:250",
		map[uint64]string{200: "0000000b", 250: "0000000c", 251: "0000000e"},
	)
	restore("0000000f", 0)
	holds(
		0, "0000000b:0 0000000c:0 0000000d:0 0000000e:0",
		map[uint64]string{0: "0000000f", 1: "0000000f"},
	)
	if former, ok := state.Former.Find("0000000c"); !ok || former.Through != 0 {
		t.Errorf("found %+v, %v", former, ok)
	}
	for n := range 20 {
		restore(fmt.Sprintf("%08x", 0x100+n), uint64(n))
	}
	if got := len(state.Former.List()); got != 8 {
		t.Errorf("remembers %d restores", got)
	}
	restored := state.Former
	state = fold(
		t,
		domain.EvolveHub,
		registered,
		added,
		domain.HubLogRestored{HubID: hub, OrgID: orgA, Incarnation: "000000aa", Former: restored},
		domain.HubLogBegun{
			HubID:       hub,
			OrgID:       orgA,
			Incarnation: "000000ab",
			Log:         "third",
			After:       9,
		},
	)
	if state.Former != "" {
		t.Errorf("a log that was begun anew has former tags: %s", state.Former)
	}
}

// What cannot be read is no tag of anything.
func FuzzFormerLogs(f *testing.F) {
	f.Add("0000000b:200 0000000c:0", uint64(7))
	f.Add("x", uint64(0))
	f.Fuzz(func(t *testing.T, text string, sequence uint64) {
		former := domain.FormerLogs(text)
		if tag := former.At(sequence, "current"); tag != "current" {
			if _, ok := former.Find(tag); !ok {
				t.Errorf("%q is none of %q", tag, text)
			}
		}
	})
}
