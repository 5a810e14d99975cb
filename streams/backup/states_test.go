package backup

import (
	"testing"
)

// A backup has the states in hub logs, which readers of events do not see: what a hub that is
// offline last reported must not be lost.
func TestRestoreKeepsStates(t *testing.T) {
	t.Parallel()
	from := newTestInstallation(t, 1, 3)
	hub := from.hubs[0]
	state, _, err := from.Directory.Hub(t.Context(), hub)
	if err != nil {
		t.Fatal(err)
	}
	const payload = "a state\x00"
	seq, err := from.HubLogs.AppendState(
		t.Context(), hub, state.Epoch.ID, state.OrgID, []byte(payload),
	)
	if err != nil {
		t.Fatal(err)
	}
	dir, _ := from.writeBackup(true)
	to := restoreBackup(t, dir)
	entries, through, err := to.HubLogs.Entries(t.Context(), hub, 1, seq)
	if err != nil || through != seq || len(entries) != 4 {
		t.Fatalf("Entries = %d entries up to %d, %v; want 4 up to %d", len(entries), through, err, seq)
	}
	last := entries[3]
	if !last.State || string(last.Payload) != payload || last.OrgID != state.OrgID {
		t.Errorf("the last entry is %+v, want the state", last)
	}
	checkRestoredHub(t, from, to, hub, 3)
}
