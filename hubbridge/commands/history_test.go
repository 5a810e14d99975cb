package commands_test

import (
	"testing"
	"time"

	"hubcloud/domain"
)

// TestHistory: each command is listed once, with its sender and its last outcome.
func TestHistory(t *testing.T) {
	t.Parallel()
	cloud := newTestCloud(t)
	p := cloud.replica("r1")
	begun := time.Now().Add(-time.Minute)
	cloud.wantAccepted(p.send(cloud.command("k")))
	cloud.wantRecords("requested accepted") // the newest two records are then those of one command
	cloud.hub.answersAll(rejects("command_refused"), true)
	if _, err := p.send(cloud.command("")); domain.CodeOf(err) != domain.CodeCommandRefused {
		t.Fatal(err)
	}
	cloud.wantRecords("requested accepted requested command_refused")
	all, err := p.History(t.Context(), cloud.hub.id, begun, 10)
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	for i, outcome := range []string{"accepted", "command_refused"} {
		done := all[i]
		if done.Outcome != outcome || (done.Message == "") != (i == 0) || done.ID != cloud.hub.ran[i] ||
			done.OrgID != orgA || done.HubID != cloud.hub.id || done.DeviceID != 3 || done.Key != "lock" ||
			string(done.Value) != "false" || done.Actor != origin().Actor || time.Since(done.At) > time.Minute {
			t.Errorf("command %d: got %+v, want outcome %s", i, done, outcome)
		}
	}
	if newest, err := p.History(t.Context(), cloud.hub.id, begun, 1); err != nil || len(newest) != 1 ||
		newest[0].ID != all[1].ID {
		t.Errorf("the newest: %+v, %v", newest, err)
	}
	none, err := p.History(t.Context(), cloud.hub.id, time.Now().Add(time.Minute), 10)
	if err != nil || len(none) != 0 {
		t.Errorf("History since later: got %+v, %v, want none", none, err)
	}
}
