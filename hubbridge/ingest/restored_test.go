package ingest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
	"hubcloud/streams/installationtest"
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
			h.hello("a", 1, 3)
			h.wantAck("a", 0)
			h.events("a", 1, 3)
			h.wantAck("a", 3)
			s.stop()
			r.restore(h, tc.kept)
			if _, err := r.Directory.RestoreLog(t.Context(), installationtest.Operator, h.id, tc.kept); err != nil {
				t.Fatal(err)
			}
			s = r.shard(h.id)
			h.hello("a", tc.oldest, 8)
			h.wantAck("a", tc.oldest-1)
			h.events("a", tc.oldest, 8)
			h.wantAck("a", 8)
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

// restore leaves on the broker what a restore from a backup brings back: no journal and, unless
// sequences of the hub's log are kept, no stream of it. It opens the installation on that.
func (r *testIngest) restore(h *hub, kept uint64) {
	r.t.Helper()
	if err := r.Journals.AwaitView(r.t.Context(), h.id, kept); err != nil {
		r.t.Fatal(err)
	}
	r.Close()
	deleteStream := func(nc *nats.Conn, name string) {
		r.t.Helper()
		js, err := jetstream.New(nc)
		if err == nil {
			err = js.DeleteStream(r.t.Context(), name)
		}
		if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			r.t.Fatal(err)
		}
	}
	deleteStream(r.Conns.Cloud, streams.JournalStream(0))
	deleteStream(r.Conns.Cloud, streams.JournalIndexStream)
	if kept == 0 {
		deleteStream(r.Conns.Shard(h.id), streams.HubStream(h.id))
	}
	org, site := r.OrgID, r.SiteID
	r.Installation = installationtest.Open(
		r.t, r.Conns, installationtest.Config{Retention: r.retention},
	)
	r.OrgID, r.SiteID = org, site
}
