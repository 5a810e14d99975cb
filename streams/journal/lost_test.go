package journal

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/broker"
	"hubcloud/streams/streamstest"
)

// damage damages commits on the disk of a broker, which it restarts. With repair, the service's own
// repair comes before the start, as with an embedded broker.
func damage(t *testing.T, b *streamstest.Broker, repair bool, commits ...Commit) {
	t.Helper()
	b.Stop()
	path := filepath.Join(
		b.Dir(), "jetstream", "CLOUD", "streams", streams.JournalStream(0), "msgs", "1.blk",
	)
	data, err := os.ReadFile(path)
	streamstest.Must(t, err)
	for _, c := range commits {
		at := bytes.Index(data, c.id[:])
		if at < 0 {
			t.Fatalf("commit %d is not in %s", c.Seq, path)
		}
		for i := range 8 {
			data[at+len(c.id)+i] ^= 0xff
		}
	}
	streamstest.Must(t, os.WriteFile(path, data, 0o600))
	if repair {
		streamstest.Must(t, broker.Repair(b.Dir(), streamstest.Logger()))
	}
	b.Start(t)
}

// Damaged commits of a journal ended its followers ("written as commit 24"), so that no process
// could start. In the last place, no writer could be opened. They must cost what they have, and
// nothing else.
func TestLostCommits(t *testing.T) {
	t.Parallel()
	for name, repair := range map[string]bool{"repaired": true, "not repaired": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := streamstest.New(t)
			j := open(t, b.Connect(t), Config{})
			s := begin(t, j, NewIndex(0))
			s.store(hubB)
			s.store(hubA, hubA)         // 1, 2
			s.store(hubB)               //
			lost := s.store(hubA, hubB) // 3
			s.store(hubB)
			also := s.store(hubA, hubA) // 4, 5
			s.store(hubA)               // 6
			s.store(hubB)
			last := s.store(hubA) // 7
			damage(t, b, repair, lost, also, last)

			w, err := j.OpenWriter(t.Context(), 0, always)
			if err != nil || w.End() != last.Seq+1 || !w.LastTime().Before(time.Now().Add(time.Minute)) {
				t.Fatalf("OpenWriter: %v; it ends at %d, want %d", err, w.End(), last.Seq+1)
			}
			index := NewIndex(0)
			f := &followed{next: 1}
			f.Follower = j.NewFollower(0, 1, func(commits []Commit) {
				f.add(commits)
				if err := index.Apply(commits...); err != nil {
					t.Error(err)
				}
			}, func(from, to uint64) {
				f.gap(from, to)
				index.Skip(to)
			})
			streamstest.Run(t, "follower", f.Run)
			f.sync(t)
			want := [][2]uint64{{lost.Seq, lost.Seq}, {also.Seq, also.Seq}, {last.Seq, last.Seq}}
			if !slices.Equal(f.gaps, want) {
				t.Errorf("lost are %v, want %v", f.gaps, want)
			}
			tip, _ := index.Tip(hubA)
			if tip.Seq != 6 {
				t.Errorf("the log ends with %d, want 6", tip.Seq)
			}
			r := j.NewReader(0)
			for from := uint64(1); from <= 6; from++ {
				records, err := r.Read(t.Context(), hubA, tip, from, 6, unbounded)
				if err != nil {
					t.Fatalf("Read from %d: %v", from, err)
				}
				checkStandIns(t, records, from)
			}
			// A snapshot of the index may know the lost end.
			end, _ := s.Tip(hubA)
			records, err := r.Read(t.Context(), hubA, end, 1, 7, unbounded)
			if err != nil || len(records) != 7 || records[6].Kind != KindCloudEvent {
				t.Errorf("Read up to the lost end: %d records, %v; want 7", len(records), err)
			}
			if oldest, err := r.Oldest(t.Context(), hubA, tip, time.Time{}); err != nil || oldest != 1 {
				t.Errorf("Oldest = %d, %v; want 1", oldest, err)
			}
		})
	}
}

// checkStandIns checks that hub A's records up to 6 are complete, with hub.events_skipped in the
// place of the last of 3 to 5.
func checkStandIns(t *testing.T, records []Record, from uint64) {
	t.Helper()
	var before time.Time
	for i, r := range records {
		if r.Seq != from+uint64(i) || !r.Time.After(before) {
			t.Fatalf("record %d from %d on: has %d at %v after %v", i, from, r.Seq, r.Time, before)
		}
		before = r.Time
		kind := map[uint64]Kind{3: KindCommand, 4: KindCommand, 5: KindCloudEvent}[r.Seq]
		if kind != 0 && r.Kind != kind {
			t.Errorf("record %d has kind %d, want %d", r.Seq, r.Kind, kind)
		}
		var e struct {
			Type  string
			HubID domain.HubID `json:"hub_id"`
			Data  struct{ From, To uint64 }
		}
		if err := json.Unmarshal(r.Payload, &e); kind == KindCloudEvent && (err != nil ||
			e.Type != domain.EventHubEventsSkipped || e.HubID != hubA || e.Data.From > e.Data.To) {
			t.Errorf("record %d is %s, %v; want hub.events_skipped", r.Seq, r.Payload, err)
		}
		if err := r.Validate(); err != nil {
			t.Errorf("record %d: %v", r.Seq, err)
		}
	}
}
