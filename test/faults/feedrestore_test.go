package faults

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// TestFeedOverARestore reads the feed while the installation is destroyed and restored from a
// backup with hub logs. Each log has hub.log_reset where it was restored. Readers that had read
// beyond the backup get everything from there on. A reader that rested since before the backup gets
// what the backup has, and feed.gap with the reason events_lost in the place of what is gone.
func TestFeedOverARestore(t *testing.T) {
	t.Parallel()
	s := harness.Start(t, "--rate", "100000", "--burst", "100000")
	f := newFeedTrial(t, s, 50*time.Millisecond)
	f.send()
	f.read("pages", "part=1/1", false)
	f.read("streams", "part=1/2", true)
	f.read("streams", "part=2/2", true)
	f.read(restingReaders, "part=1/1", false)
	f.awaitProgress("before the backup")
	for _, h := range f.hubs {
		streamstest.Eventually(t, "the resting reader has events of "+h.hub.ID, func() bool {
			return len(f.gotBy(restingReaders, h.hub.ID)) > 0
		})
	}
	resume := f.rest()
	f.awaitProgress("while a reader rests")
	backup := filepath.Join(t.TempDir(), "backup")
	s.CLI("backup", backup, "--hub-logs")
	f.awaitProgress("after the backup")
	s.Kill()
	// The database of a killed service exits by itself and writes until then.
	streamstest.Eventually(t, "the data directory is gone", func() bool {
		return os.RemoveAll(s.Dir) == nil
	})
	s.CLI("restore", backup)
	s.Begin()
	f.awaitProgress("after the restore")
	resume()
	f.read("pages from the oldest event", "part=1/1", false)
	f.awaitProgress("at the end")

	logs := map[string][]harness.Event{}
	for _, h := range f.hubs {
		h.end()
		log := f.tenant.AllEvents(h.hub.ID, "")
		logs[h.hub.ID] = log
		resets := slices.DeleteFunc(slices.Clone(log), func(e harness.Event) bool {
			return e.Type != "hub.log_reset"
		})
		if len(resets) != 1 || string(resets[0].Data) != `{"reason":"restored"}` {
			t.Errorf("log of %s: got %+v, want one hub.log_reset", h.hub.ID, resets)
		}
		last := log[len(log)-1].Cursor
		for set := range f.readers {
			streamstest.Eventually(t, set+" have the last event of "+h.hub.ID, func() bool {
				return slices.ContainsFunc(f.gotBy(set, h.hub.ID), func(e harness.Event) bool {
					return e.Cursor == last
				})
			})
		}
	}
	close(f.stop)
	f.reading.Wait()
	for set, readers := range f.readers {
		for _, r := range readers {
			if len(r.wrong) > 0 || r.expired > 0 {
				t.Errorf("%s, %s: got %d answers 410 and %q, want none", set, r.query, r.expired, r.wrong)
			}
		}
		for hub, log := range logs {
			if err := isRestored(log, f.gotBy(set, hub), set == restingReaders); err != nil {
				t.Errorf("%s: hub %s: %v", set, hub, err)
			}
		}
	}
}

// isRestored returns an error unless a reader got all events of a restored log once and in order. A
// reader that has rested since before the backup got feed.gap right before the events that followed
// the restore, and nothing that is not in the log. Others may have read what the restore has lost.
func isRestored(log, got []harness.Event, rested bool) error {
	gaps := 0
	rest := log
	for n, e := range got {
		switch {
		case len(rest) > 0 && rest[0].Cursor == e.Cursor:
			if rest[0].Type == "hub.log_reset" && rested && (n == 0 || got[n-1].Type != "feed.gap") {
				return fmt.Errorf("hub.log_reset is event %d and does not follow feed.gap", n)
			}
			rest = rest[1:]
		case e.Type == "feed.gap":
			gaps++
			if want := `"reason":"events_lost"`; rested && !bytes.Contains(e.Data, []byte(want)) {
				return fmt.Errorf("feed.gap has the data %s, want %s", e.Data, want)
			}
		case rested && len(rest) == 0: // recorded after the log was read: the last was still under way
		case rested:
			return fmt.Errorf("event %d is %s %s, which the log does not have there", n, e.Type, e.Cursor)
		}
	}
	if len(rest) > 0 {
		return fmt.Errorf("%d events are missing, from %s %s on", len(rest), rest[0].Type, rest[0].Cursor)
	}
	if rested && gaps != 1 {
		return fmt.Errorf("got %d feed.gap, want 1", gaps)
	}
	return nil
}
