package backup

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/feed"
	"hubcloud/streams/installationtest"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/views/viewstest"
)

// TestBackupAndRestore checks that a restore brings back every message of the streams with its
// sequence and time, and every key of the buckets, and begins a new epoch of every hub's log.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	for _, hubLogs := range []bool{false, true} {
		t.Run(fmt.Sprint("with hub logs ", hubLogs), func(t *testing.T) {
			t.Parallel()
			testBackupAndRestore(t, hubLogs)
		})
	}
}

func testBackupAndRestore(t *testing.T, hubLogs bool) {
	from := newTestInstallation(t, 5, 30)
	// The new epoch of hub 1 has no events yet.
	streamstest.Must(t, from.Directory.BeginEpoch(
		t.Context(), installationtest.Operator, from.hubs[1],
		domain.BeginEpoch{OwnLog: "b", Through: 4, After: 30},
	))
	from.put(from.Idempotency, "key", "answer")
	from.put(from.KeyUse, "deleted", "1")
	streamstest.Must(t, from.KeyUse.Delete(t.Context(), "deleted"))
	from.put(from.SignIn, "session", "secret")
	dir, m := from.writeBackup(hubLogs)
	checkModes(t, dir)
	before := messages(t, from.Conns.Cloud, streams.DirectoryStream)
	commits := messages(t, from.Conns.Cloud, streams.JournalStream(0))
	presence := values(t, from.Presence)
	from.put(from.Presence, string(from.hubs[0]), "after the backup")
	from.appendEvents(from.hubs[0], 30, 5)

	if m.Directory != uint64(len(before)) || m.HubLogs != hubLogs ||
		m.Shards != streamstest.Shards || m.Installation != "x" || !m.Has("ca/ca-key.pem") {
		t.Errorf("manifest: got %+v, want directory_sequence %d and ca/ca-key.pem", m, len(before))
	}
	to := restoreBackup(t, dir)
	after := messages(t, to.Conns.Cloud, streams.DirectoryStream)
	if !slices.Equal(after[:len(before)], before) || len(after) != len(before)+len(from.hubs) {
		t.Errorf(
			"directory: got %d events, want the %d of before and one of each hub; got after "+
				"them:\n%s",
			len(after), len(before), strings.Join(after[len(before):], "\n"),
		)
	}
	got, want := messages(t, to.Conns.Cloud, mailStream), messages(t, from.Conns.Cloud, mailStream)
	if len(want) != 1 || !slices.Equal(got, want) {
		t.Errorf("mails: got %v, want %v", got, want)
	}
	if got := values(t, to.Presence); !maps.Equal(got, presence) {
		t.Errorf("presence: got %v, want %v", got, presence)
	}
	if got, want := values(t, to.Checkpoints), values(t, from.Checkpoints); !maps.Equal(got, want) {
		t.Errorf("ingest checkpoints: got %v, want %v", got, want)
	}
	if got := values(t, to.Idempotency)["key"]; got != "answer" {
		t.Errorf("answer to a command: got %q, want %q", got, "answer")
	}
	if got := values(t, to.KeyUse); len(got) > 0 {
		t.Errorf("use of keys: got %v, want none", got)
	}
	if got := values(t, to.SignIn); len(got) > 0 {
		t.Errorf("sessions: got %v, want none", got)
	}
	for n, hub := range from.hubs {
		events := 30
		if !hubLogs || n == 1 {
			events = 0
		}
		checkRestoredHub(t, from, to, hub, events)
		if hubLogs {
			viewstest.Await(t, to.Conns, hub, 30) // is written again from the journal
		}
	}
	if !hubLogs {
		return
	}
	if got := messages(t, to.Conns.Cloud, streams.JournalStream(0)); len(got) < len(commits) ||
		!slices.Equal(got[:len(commits)], commits) {
		t.Errorf("journal: got %d commits, want first the %d of before", len(got), len(commits))
	}
}

// checkRestoredHub checks that a hub's log has a new epoch and that many events, and that the hub
// is otherwise unchanged.
func checkRestoredHub(t *testing.T, from, to *testInstallation, hub domain.HubID, events int) {
	t.Helper()
	before, _, err := from.Directory.Hub(t.Context(), hub)
	streamstest.Must(t, err)
	after, _, err := to.Directory.Hub(t.Context(), hub)
	streamstest.Must(t, err)
	if after.Epoch.ID == before.Epoch.ID {
		t.Errorf("hub %s: epoch: got %v as before, want a new one", hub, after.Epoch.ID)
	}
	if after.OrgID != before.OrgID || after.OwnLog != before.OwnLog {
		t.Errorf("hub %s: got %+v, want %+v with another epoch", hub, after, before)
	}
	page, err := to.HubLogs.Page(t.Context(), hub, "", 500)
	if err != nil || len(page.Events) != events {
		t.Errorf("hub %s: got %d events, error %v, want %d", hub, len(page.Events), err, events)
	}
}

// checkModes checks the permissions of a backup, which has the authority's key.
func checkModes(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		want := os.FileMode(0o600)
		if info.IsDir() {
			want = 0o700
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("mode of %s: got %v, want %v", path, got, want)
		}
		return nil
	})
	streamstest.Must(t, err)
}

// TestRestoreExpiredLog restores a journal whose commits are all older than the retention: the
// hub's log is empty and keeps its last sequence.
func TestRestoreExpiredLog(t *testing.T) {
	t.Parallel()
	from := newTestInstallation(t, 1, 20)
	index, err := from.Journals.ReadIndex(t.Context(), 0)
	if err == nil {
		err = from.Journals.SaveIndex(t.Context(), index)
	}
	streamstest.Must(t, err)
	dir, m := from.writeBackup(true)
	hub := from.hubs[0]
	for _, f := range m.Files {
		if f.Stream != nil && f.Stream.Name == streams.JournalStream(0) {
			f.Stream.Config = []byte(strings.Replace(
				string(f.Stream.Config), `"max_age":7200000000000`, `"max_age":100000000`, 1,
			))
		}
	}
	stored := time.Now()
	streamstest.Eventually(t, "every event is older than the retention", func() bool {
		return time.Since(stored) > 200*time.Millisecond
	})
	conns := streamstest.Start(t)
	streamstest.Must(t, Restore(t.Context(), conns, m, restoreConfig(dir)))
	streamstest.Eventually(t, "the journal is empty", func() bool {
		info, err := jsapi.New(conns.Cloud).Info(t.Context(), streams.JournalStream(0))
		return err == nil && info.State.Msgs == 0
	})
	to := openTestInstallation(t, conns)
	if tip, _ := to.Journals.Tip(hub); tip.Seq != 20 {
		t.Errorf("the log ends with %d, want 20", tip.Seq)
	}
	checkRestoredHub(t, from, to, hub, 0)
	if last := to.appendEvents(hub, 0, 1); last != 21 {
		t.Errorf("next sequence: got %d, want 21", last)
	}
}

// TestLongDirectory writes and restores a backup of a directory whose snapshot has many parts.
func TestLongDirectory(t *testing.T) {
	t.Parallel()
	const events = 20_000
	i := newTestInstallation(t, 3, 0)
	origin := installationtest.Operator
	origin.At = time.Now()
	event := domain.Record(origin, domain.SiteRenamed{
		OrgID: i.OrgID, SiteID: i.SiteID, Name: "A name of the usual length of names",
	})
	event.ID = "01JD5Q3W8ZV6K2M4N7P9R1S3T5"
	text, err := domain.EncodeEvent(event)
	streamstest.Must(t, err)
	sending, err := jsapi.NewPipeline(i.Conns.Cloud, pendingPuts)
	streamstest.Must(t, err)
	defer sending.Close()
	for range events {
		streamstest.Must(t, sending.Send(t.Context(), &nats.Msg{
			Subject: streams.SiteSubject(i.OrgID, i.SiteID), Data: text,
		}))
	}
	streamstest.Must(t, sending.Wait(t.Context()))
	head, err := i.Log.Head(t.Context(), 0)
	dir, m := i.writeBackup(false)
	if err != nil || head < events || m.Directory != head {
		t.Fatalf("last event: got %d, error %v, %d in the backup, want at least %d",
			head, err, m.Directory, events)
	}
	to := restoreBackup(t, dir)
	if got, err := to.Log.Head(t.Context(), 0); err != nil || got != head+3 {
		t.Errorf("last event after the restore: got %d, error %v, want %d", got, err, head+3)
	}
}

// A restore began a new epoch for every hub that was ever added, and so failed with not_found at
// the first hub that was released since. A backup also has the states in hub logs, which readers of
// events do not see: what a hub that is offline last reported must not be lost.
func TestRestoreOfAReleasedHubAndStates(t *testing.T) {
	t.Parallel()
	from := newTestInstallation(t, 2, 3)
	_, err := from.Directory.ReleaseHub(t.Context(), installationtest.Operator, from.hubs[0])
	streamstest.Must(t, err)
	hub := from.hubs[1]
	state, _, err := from.Directory.Hub(t.Context(), hub)
	streamstest.Must(t, err)
	const payload = "a state\x00"
	seq, err := from.HubLogs.AppendState(
		t.Context(), hub, state.Epoch.ID, state.OrgID, []byte(payload),
	)
	streamstest.Must(t, err)
	dir, _ := from.writeBackup(true)
	before := messages(t, from.Conns.Cloud, streams.DirectoryStream)
	to := restoreBackup(t, dir)
	if after := messages(t, to.Conns.Cloud, streams.DirectoryStream); len(after) != len(before)+1 {
		t.Errorf("events of the directory: got %d, want %d", len(after), len(before)+1)
	}
	released, _, err := to.Directory.Hub(t.Context(), from.hubs[0])
	if err != nil || released.OrgID != "" || released.Released == nil {
		t.Errorf("released hub: got %+v, %v", released, err)
	}
	var entries []feed.Entry
	for through := uint64(0); through < seq; { // an answer may have a part of them
		var part []feed.Entry
		part, through, err = to.HubLogs.Entries(t.Context(), hub, through+1, seq)
		streamstest.Must(t, err)
		entries = append(entries, part...)
	}
	if len(entries) != 4 {
		t.Fatalf("got %d entries, want 4", len(entries))
	}
	last := entries[3]
	if !last.State || string(last.Payload) != payload || last.OrgID != state.OrgID {
		t.Errorf("the last entry is %+v, want the state", last)
	}
	checkRestoredHub(t, from, to, hub, 3)
}
