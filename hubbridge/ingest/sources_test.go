package ingest

import (
	"testing"

	"hubcloud/domain"
	"hubcloud/streams/feed"
)

// The checkpoint of a log of which the broker has lost the end accounted for the lost events too:
// they were never reported as skipped.
func TestCheckpointNewerThanTheLog(t *testing.T) {
	t.Parallel()
	former, present := domain.NewEpochID(1), domain.NewEpochID(2)
	src := sources{
		access: domain.HubAccess{
			OrgID: "org", Epoch: domain.Epoch{ID: former}.Restored(present, 3),
		},
		lastEvents: []feed.LastEvent{{Seq: 3, EpochID: former, OwnLog: "a", Through: 3}},
		checkpoint: checkpoint{Epoch: former, Log: "a", Through: 6, StreamSeq: 6},
	}
	if l := src.resolve(); l.ownLog != "a" || l.through != 3 || l.lastEventSeq != 3 {
		t.Errorf("got log %q through %d after event %d, want \"a\" through 3 after 3", l.ownLog,
			l.through, l.lastEventSeq)
	}
}
