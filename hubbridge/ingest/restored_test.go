package ingest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
	"hubcloud/streams/installationtest"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

// TestRestored holds that after a restore from a backup, events that were acknowledged since the
// backup become a gap if the hub no longer holds them, and are stored again otherwise. The backup
// holds the checkpoint and possibly the log.
func TestRestored(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		kept   uint64 // sequences of the log that the backup has
		oldest uint64
		want   string
	}{
		"lost":                               {0, 7, "log_reset:restored skip:4-6 7 8"},
		"held by the hub":                    {0, 4, "log_reset:restored 4 5 6 7 8"},
		"lost, log in the backup":            {3, 7, "1 2 3 log_reset:restored skip:4-6 7 8"},
		"held by the hub, log in the backup": {3, 4, "1 2 3 log_reset:restored 4 5 6 7 8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTestIngest(t, time.Hour)
			h := adopted(r)
			s := r.shard(h.id)
			h.helloAcked("a", 1, 3, 0)
			h.eventsAcked("a", 1, 3)
			s.stop()
			r.restore(h, tc.kept)
			if _, err := r.Directory.RestoreLog(t.Context(), installationtest.Operator, h.id, tc.kept); err != nil {
				t.Fatal(err)
			}
			s = r.shard(h.id)
			h.helloAcked("a", tc.oldest, 8, tc.oldest-1)
			h.eventsAcked("a", tc.oldest, 8)
			h.wantEventLog(tc.want)
			// The log has told that it was restored, also after a crash without a checkpoint.
			s.kill()
			r.shard(h.id).Observe(h.id, began(1))
			h.wantOnline(true)
			h.wantEventLog(tc.want + " connected")
			if got := r.count("resets_total"); got != 0 {
				t.Errorf("resets counted: got %v, want 0", got)
			}
		})
	}
}

// restore leaves on the broker what a restore from a backup brings back: no view and, of the
// journal, the commits with the first sequences of the hub's log. It opens the installation on
// that.
func (r *testIngest) restore(h *hub, kept uint64) {
	r.t.Helper()
	r.Close()
	api := jsapi.New(r.Conns.Cloud)
	var commits []*nats.Msg
	for seq := uint64(1); kept > 0; seq++ {
		stored, err := api.Get(r.t.Context(), streams.JournalStream(0), seq)
		streamstest.Must(r.t, err)
		commits = append(commits, &nats.Msg{Subject: stored.Subject, Data: stored.Data})
		c, err := journal.Unmarshal(stored.Data)
		streamstest.Must(r.t, err)
		if slices.ContainsFunc(c.Records, func(record journal.Record) bool {
			return record.Hub == h.id && record.Seq == kept
		}) {
			break
		}
	}
	for _, name := range []string{streams.JournalStream(0), streams.JournalIndexStream} {
		streamstest.Must(r.t, api.Delete(r.t.Context(), name))
	}
	if err := jsapi.New(r.Conns.Shard(h.id)).Delete(r.t.Context(), streams.HubStream(h.id)); err != nil {
		r.t.Fatal(err)
	}
	journals, err := journal.New(journal.Config{Conn: r.Conns.Cloud, Retention: r.retention})
	if err == nil {
		err = journals.Declare(r.t.Context())
	}
	streamstest.Must(r.t, err)
	for _, commit := range commits {
		if _, err := jsapi.Append(r.t.Context(), r.Conns.Cloud, commit); err != nil {
			r.t.Fatal(err)
		}
	}
	org, site := r.OrgID, r.SiteID
	r.Installation = installationtest.Open(
		r.t, r.Conns, installationtest.Config{Retention: r.retention},
	)
	r.OrgID, r.SiteID = org, site
}
