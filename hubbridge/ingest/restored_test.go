package ingest_test

import (
	"testing"
	"time"

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
		"lost":                               {0, 7, "skip:4-6 7 8"},
		"held by the hub":                    {0, 4, "4 5 6 7 8"},
		"lost, log in the backup":            {3, 7, "1 2 3 skip:4-6 7 8"},
		"held by the hub, log in the backup": {3, 4, "1 2 3 4 5 6 7 8"},
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
			if tc.kept == 0 {
				js, err := jetstream.New(r.Conns.Shard(h.id))
				if err == nil {
					err = js.DeleteStream(t.Context(), streams.HubStream(h.id))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := r.Directory.RestoreLog(t.Context(), installationtest.Operator, h.id, tc.kept); err != nil {
				t.Fatal(err)
			}
			r.shard(h.id)
			h.hello("a", tc.oldest, 8)
			h.wantAck("a", tc.oldest-1)
			h.events("a", tc.oldest, 8)
			h.wantAck("a", 8)
			h.wantEventLog(tc.want)
			if got := r.count("resets_total"); got != 0 {
				t.Errorf("resets counted: got %v, want 0", got)
			}
		})
	}
}
