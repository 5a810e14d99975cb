package faults

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/test/harness"
)

// blockOf returns the file with the messages of a stream of the durable server.
func blockOf(s *harness.Service, stream string) string {
	return filepath.Join(
		s.Dir, "nats", "durable", "jetstream", "CLOUD", "streams", stream, "msgs", "1.blk",
	)
}

// flip flips eight bytes of a file.
func flip(t *testing.T, path string, place func(data []byte) int) {
	t.Helper()
	data, err := os.ReadFile(path)
	harness.Must(t, err)
	at := place(data)
	for i := range 8 {
		data[at+i] ^= 0xff
	}
	harness.Must(t, os.WriteFile(path, data, 0o600))
}

// TestDamagedJournal damages the journal of a stopped service, in two of the ways that the tests of
// the broker have. The service did not start any more: "unreadable commit", an endless wait for the
// leases of its shards, an endless "overtaken".
func TestDamagedJournal(t *testing.T) {
	t.Parallel()
	s := harness.Start(t, "--rate", "100000", "--burst", "100000")
	tenant := harness.NewTenant(t, s, "Damaged journal")
	hub := adopted(t, s, tenant)
	hub.Disconnect()
	stored := uint64(0)
	send := func() {
		t.Helper()
		hub.Connect()
		hub.Hello("log-1", stored+1, stored+10)
		hub.WaitAck("log-1", stored)
		for range 10 {
			stored++
			hub.EventsFrom("log-1", stored, stored)
			hub.WaitAck("log-1", stored)
		}
		hub.Disconnect()
		tenant.Await(hub.ID, "", "the hub is offline", func(e harness.Event) bool {
			return e.Type == "hub.disconnected"
		})
	}
	numbers := func() (all []uint64, skipped int) {
		t.Helper()
		for _, e := range tenant.AllEvents(hub.ID, "") {
			switch e.Type {
			case "channel.observed":
				all = append(all, uint64(len(all)+1))
			case domain.EventHubEventsSkipped:
				skipped++
			}
		}
		return all, skipped
	}
	send()
	path := blockOf(s, streams.JournalStream(0))
	for _, c := range []struct {
		name   string
		damage func()
		// view reports that the hub's own stream is lost as well.
		view, kill bool
	}{
		{"the last record, after a kill", func() {
			flip(t, path, func(data []byte) int { return len(data) - 20 })
		}, false, true},
		{"an event, and the hub's own stream", func() {
			flip(t, path, func(data []byte) int {
				return bytes.LastIndex(data, []byte(`"channel.observed"`))
			})
		}, true, false},
	} {
		if c.kill {
			s.Kill()
		} else {
			s.Stop()
		}
		c.damage()
		if c.view {
			folders, err := filepath.Glob(filepath.Join(
				s.Dir, "nats", "jetstream", "*", "streams", streams.HubStream(domain.HubID(hub.ID)),
			))
			if err != nil || len(folders) != 1 {
				t.Fatalf("the hub's stream: %v, %v", folders, err)
			}
			harness.Must(t, os.RemoveAll(folders[0]))
		}
		s.Begin()
		before, _ := numbers()
		want := int(stored)
		if c.view {
			want -= 2 // the stream also had what the former case has damaged
		}
		if len(before) < want {
			t.Errorf("%s: %d of %d events are left", c.name, len(before), stored)
		}
		send()
		all, skipped := numbers()
		if len(all) < want+10 || c.view && skipped == 0 {
			t.Errorf("%s: after 10 more, %d of %d events, and %d hub.events_skipped", c.name, len(all),
				stored, skipped)
		}
	}
	if !slices.ContainsFunc(strings.Split(s.Log(), "\n"), func(line string) bool {
		return strings.Contains(line, "stored messages are damaged and lost") &&
			strings.Contains(line, "JOURNAL_0") && strings.Contains(line, "stored ")
	}) {
		t.Error("the log does not name what is lost")
	}
}

// TestDamagedDirectory damages the directory of a stopped service. It started without a word,
// decided on what was left, and its read models stopped later. It must not start until the events
// are put back or their loss is accepted.
func TestDamagedDirectory(t *testing.T) {
	t.Parallel()
	s := harness.Start(t, "--rate", "100000", "--burst", "100000")
	tenant := harness.NewTenant(t, s, "Damaged directory")
	for _, name := range []string{"First", "Second", "Third"} {
		tenant.Must(http.MethodPost, "/sites", map[string]any{"name": name}, http.StatusCreated)
	}
	sites := func() string {
		t.Helper()
		return string(tenant.Must(http.MethodGet, "/sites", nil, http.StatusOK).Body)
	}
	want := sites()
	saved := filepath.Join(t.TempDir(), "backup")
	if _, errs, code := harness.RunBinary(t, "backup", "--data-dir", s.Dir, saved); code != 0 {
		t.Fatalf("backup: %s", errs)
	}
	tenant.Must(http.MethodPost, "/sites", map[string]any{"name": "Later"}, http.StatusCreated)
	later := sites()
	path := blockOf(s, streams.DirectoryStream)
	damage := func(text string) {
		t.Helper()
		s.Stop()
		if text == "" {
			harness.Must(t, os.RemoveAll(filepath.Dir(filepath.Dir(path))))
		} else {
			flip(t, path, func(data []byte) int { return bytes.Index(data, []byte(text)) })
		}
		s.Launch()
		select {
		case <-s.Ended():
		case <-time.After(time.Minute):
			t.Fatalf("%s: the service runs on a directory with a hole", text)
		}
		if code := s.ExitCode(); code == 0 || !strings.Contains(s.Log(), "restore --directory") {
			t.Errorf("%s: exit status %d, and the log does not name what to do", text, code)
		}
		out, _, _ := harness.RunBinary(t, "doctor", "--data-dir", s.Dir, "--json")
		if !strings.Contains(out, "restore --directory") {
			t.Errorf("%q: the doctor does not name the hole:\n%s", text, out)
		}
	}
	restore := func(args ...string) (string, int) {
		t.Helper()
		args = append([]string{"restore", "--directory", "--data-dir", s.Dir}, args...)
		_, errs, code := harness.RunBinary(t, args...)
		return errs, code
	}
	damage(`"Second"`)
	if errs, code := restore(saved); code != 0 {
		t.Fatalf("restore from a backup: %s", errs)
	}
	s.Begin()
	if got := sites(); got != later {
		t.Errorf("after the restore from a backup: got\n%s\nwant\n%s", got, later)
	}

	damage(`"Later"`) // the last event, which the backup does not have
	if errs, code := restore(saved); code == 0 || !strings.Contains(errs, "--accept-loss") {
		t.Errorf("restore from an old backup: %d, %s", code, errs)
	}
	if errs, code := restore(saved, "--accept-loss"); code != 0 {
		t.Fatalf("accept the loss: %s", errs)
	}
	s.Begin()
	harness.RunBinary(t, "projections", "rebuild", "--data-dir", s.Dir)
	if got := sites(); got != want {
		t.Errorf("after the loss was accepted: got\n%s\nwant\n%s", got, want)
	}
	tenant.Must(http.MethodPost, "/sites", map[string]any{"name": "New"}, http.StatusCreated)
	if got := sites(); !strings.Contains(got, `"New"`) {
		t.Errorf("a later site is missing: %s", got)
	}

	damage("") // the whole stream is removed: the service went on with an empty directory
	if errs, code := restore(saved); code != 0 {
		t.Fatalf("create the directory from a backup: %s", errs)
	}
	s.Begin()
	harness.RunBinary(t, "projections", "rebuild", "--data-dir", s.Dir)
	if got := sites(); got != want {
		t.Errorf("created again from a backup: got\n%s\nwant\n%s", got, want)
	}

	damage("")
	if errs, code := restore("--accept-loss"); code != 0 {
		t.Fatalf("accept the loss of the directory: %s", errs)
	}
	s.Begin()
	if answer, err := tenant.Try(http.MethodGet, "/sites", nil); err != nil ||
		answer.Status != http.StatusUnauthorized {
		t.Errorf("a key of the lost directory: got %d, %v, want 401", answer.Status, err)
	}
}
