package tap_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/disk"
	"hubcloud/streams/feed"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/tap"
)

// readCheckpoint returns the positions in a checkpoint's file.
func readCheckpoint(path string) (map[domain.HubID]feed.DecodedCursor, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var c tap.Checkpoint
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, err
	}
	all := map[domain.HubID]feed.DecodedCursor{}
	for id, cursor := range c.Hubs {
		if all[id], err = feed.DecodeCursor(cursor); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// TestDamagedCheckpoint checks that a tap does not start with a file that is no checkpoint.
func TestDamagedCheckpoint(t *testing.T) {
	t.Parallel()
	r := newTestHubs(t, time.Hour)
	for name, text := range map[string]string{
		"empty":           "",
		"cut off":         `{"hubcloud_tap_checkpoint":1,"hubs":{"hub-aaaa`,
		"another version": `{"hubcloud_tap_checkpoint":2,"hubs":{}}`,
		"of forward":      `{"hubcloud_forward_checkpoint":1,"position":"p"}`,
		"a cursor":        `{"hubcloud_tap_checkpoint":1,"hubs":{"hub-aaaa-aaaa-0001":"x"}}`,
		"a hub":           `{"hubcloud_tap_checkpoint":1,"hubs":{"x":""}}`,
	} {
		path := filepath.Join(t.TempDir(), "tap.checkpoint")
		streamstest.Must(t, os.WriteFile(path, []byte(text), 0o600))
		err := r.start(tap.Config{Output: newSink(), Checkpoint: path}).wait()
		if !errors.Is(err, disk.ErrDamaged) || !strings.Contains(err.Error(), "move it away") {
			t.Errorf("%s: got %v, want the advice to move the file away", name, err)
		}
	}
}

// TestOneTapPerCheckpoint checks that a second tap with the same file is rejected: it would
// overwrite the first one's position.
func TestOneTapPerCheckpoint(t *testing.T) {
	t.Parallel()
	r := newTestHubs(t, time.Hour)
	r.store(hubID(1), 1)
	path := filepath.Join(t.TempDir(), "tap.checkpoint")
	out := newSink()
	first := r.start(tap.Config{Follow: true, Output: out, Checkpoint: path})
	out.await(t, 1)
	if err := r.start(tap.Config{
		Follow: true, Output: newSink(), Checkpoint: path,
	}).wait(); !errors.Is(err, tap.ErrCheckpointTaken) {
		t.Errorf("second tap: got %v, want ErrCheckpointTaken", err)
	}
	streamstest.Must(t, first.end())
	if err := r.start(tap.Config{Output: newSink(), Checkpoint: path}).wait(); err != nil {
		t.Errorf("tap after the first has ended: got %v, want nil", err)
	}
}

// TestKilledAtAnyTime copies the checkpoint's file at random moments, as a kill -9 leaves it, and
// resumes from the copies. No event is lost, and only events delivered after the checkpoint was
// written are repeated.
func TestKilledAtAnyTime(t *testing.T) {
	t.Parallel()
	const hubs = 8
	r := newTestHubs(t, time.Hour)
	dir := t.TempDir()
	path := filepath.Join(dir, "tap.checkpoint")
	out := newSink()
	u := r.start(
		tap.Config{Follow: true, Output: out, Checkpoint: path, CheckpointEvery: time.Millisecond},
	)
	type killed struct {
		delivered int
		file      []byte
	}
	var kills []killed
	for i := range 25 {
		for n := range hubs {
			r.store(hubID(n), 1+(i+n)%9)
		}
		file, err := os.ReadFile(path)
		if err == nil {
			kills = append(kills, killed{len(out.all()), file})
		}
	}
	want := 0
	for _, n := range r.n {
		want += n
	}
	records := out.await(t, want)
	streamstest.Must(t, u.end())
	if len(kills) < 5 {
		t.Fatalf("checkpoints: got %d, want at least 5", len(kills))
	}
	for i, d := range kills {
		if i%4 != 0 && i != len(kills)-1 {
			continue
		}
		former := filepath.Join(dir, "former")
		streamstest.Must(t, os.WriteFile(former, d.file, 0o600))
		at, err := readCheckpoint(former)
		streamstest.Must(t, err)
		again := r.run(tap.Config{Checkpoint: former})
		before, after := numbers(t, records[:d.delivered]), numbers(t, again)
		for n := range hubs {
			id := hubID(n)
			seq := int(at[id].Seq)
			if len(before[id]) < seq {
				t.Errorf("%s: checkpoint at %d after %d delivered events, want at most that",
					id, seq, len(before[id]))
			}
			if !slices.Equal(after[id], upTo(seq+1, r.n[id])) {
				t.Errorf("%s: got %v after checkpoint %d, want all up to %d", id, after[id], seq, r.n[id])
			}
		}
	}
}

// TestExpired checks that events that expired while no tap ran are reported once, in their place, as
// a gap with their sequences, also for a hub that the tap did not know.
func TestExpired(t *testing.T) {
	t.Parallel()
	r := newTestHubs(t, time.Hour)
	cfg := tap.Config{Checkpoint: filepath.Join(t.TempDir(), "tap.checkpoint")}
	check := func(what, want string) []tap.Record {
		t.Helper()
		records := r.run(cfg)
		if got := summary(numbers(t, records)); got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
		return records
	}
	r.store(hubID(1), 5)
	r.store(hubID(3), 5)
	check("first run", "hub-aaaa-aaaa-0001: 1-5; hub-aaaa-aaaa-0003: 1-5")
	// Hub 1 loses unread events and gets new ones, hub 2 was never read, hub 3 gets no new events.
	r.store(hubID(1), 5)
	r.store(hubID(2), 5)
	r.expire(hubID(1), hubID(2), hubID(3))
	r.store(hubID(1), 2)
	r.store(hubID(2), 2)
	records := check(
		"after the expiry", "hub-aaaa-aaaa-0001: 0,11-12; hub-aaaa-aaaa-0002: 0,6-7",
	)
	for _, record := range records {
		want := map[domain.HubID]string{
			hubID(1): `{"reason":"expired","from":6,"to":10}`,
			hubID(2): `{"reason":"expired","from":1,"to":5}`,
		}[record.Hub]
		if record.Type == tap.TypeGap && !strings.Contains(string(record.Envelope), `"data":`+want) {
			t.Errorf("gap of %s: got %s, want %s", record.Hub, record.Envelope, want)
		}
	}
	r.expire(hubID(1))
	r.store(hubID(1), 1)
	check("after the gap", "hub-aaaa-aaaa-0001: 13")
}

// TestExpiredUndelivered checks that events are reported as a gap that a tap had received but not
// delivered when it was killed, and that expired before the next start.
func TestExpiredUndelivered(t *testing.T) {
	t.Parallel()
	r := newTestHubs(t, time.Hour)
	path := filepath.Join(t.TempDir(), "tap.checkpoint")
	r.store(hubID(1), 5)
	stuck := newSink()
	release := make(chan struct{})
	stuck.fail = func() error { <-release; return tap.ErrReaderGone }
	first := r.start(tap.Config{
		Follow: true, Output: stuck, Checkpoint: path, CheckpointEvery: 5 * time.Millisecond,
	})
	streamstest.Eventually(t, "the checkpoint has the hub", func() bool {
		at, err := readCheckpoint(path)
		_, known := at[hubID(1)]
		return err == nil && known
	})
	close(release)
	if err := first.wait(); !errors.Is(err, tap.ErrReaderGone) {
		t.Fatal(err)
	}
	r.expire(hubID(1))
	r.store(hubID(1), 1)
	got := r.run(tap.Config{Checkpoint: path})
	if len(got) != 2 ||
		!strings.Contains(string(got[0].Envelope), `"data":{"reason":"expired","from":1,"to":5}`) ||
		number(t, got[1]) != 6 {
		t.Errorf("got %d records, the first %s, want a gap and event 6", len(got), got[0].Envelope)
	}
}

// expire removes all that hubs' streams have, as if it had expired.
func (r *testHubs) expire(hubs ...domain.HubID) {
	r.t.Helper()
	for _, id := range hubs {
		js := streamstest.JetStream(r.t, r.conns.Shard(id))
		stream, err := js.Stream(r.t.Context(), streams.HubStream(id))
		if err == nil {
			err = stream.Purge(r.t.Context())
		}
		streamstest.Must(r.t, err)
	}
}
