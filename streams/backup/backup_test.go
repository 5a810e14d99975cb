package backup

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

// TestBackupAndRestore: streams come back message by message, with their sequences and times;
// buckets with their keys; and every hub's log has another epoch.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	for name, hubLogs := range map[string]bool{"without hub logs": false, "with hub logs": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := newInstallation(t, 5, 30)
			if err := from.service.BeginLog(t.Context(), origin, from.hubs[1], domain.BeginLog{
				OwnLog: "b", Through: 4, After: 30,
			}); err != nil {
				t.Fatal(err)
			}
			from.put(from.Idempotency, "key", "answer")
			from.put(from.KeyUse, "gone", "1")
			if err := from.KeyUse.Delete(t.Context(), "gone"); err != nil {
				t.Fatal(err)
			}
			from.put(from.SignIn, "session", "secret")
			dir, m := from.take(hubLogs)
			before := messages(t, from.conns.Cloud, streams.DirectoryStream)
			// What happens afterwards is not in it.
			from.put(from.Presence, string(from.hubs[0]), "later")
			from.append(from.hubs[0], 30, 5)

			if m.Directory != uint64(len(before)) || m.HubLogs != hubLogs || m.Shards != 4 ||
				m.Installation != "x" ||
				!m.Has("ca/ca-key.pem") {
				t.Errorf("the manifest is %+v", m)
			}
			to := restored(t, dir)
			after := messages(t, to.conns.Cloud, streams.DirectoryStream)
			if !slices.Equal(after[:len(before)], before) ||
				len(after) != len(before)+len(from.hubs) {
				t.Errorf(
					"the directory had %d events and has %d now:\n%s", len(before), len(after),
					strings.Join(after[len(before):], "\n"),
				)
			}
			if got, want := messages(t, to.conns.Cloud, "MAIL"), messages(t, from.conns.Cloud, "MAIL"); len(
				want,
			) != 1 ||
				!slices.Equal(got, want) {
				t.Errorf("mails are %v, and were %v", got, want)
			}
			want := values(t, from.Presence)
			want[string(from.hubs[0])] = `{"hub":0}`
			if got := values(t, to.Presence); !maps.Equal(got, want) {
				t.Errorf("presence is %v", got)
			}
			if got := values(t, to.Ledger); !maps.Equal(got, values(t, from.Ledger)) {
				t.Errorf("the ledger is %v", got)
			}
			if got := values(t, to.Idempotency)["key"]; got != "answer" {
				t.Errorf("the answer to a command is %q", got)
			}
			if got := len(values(t, to.KeyUse)) + len(values(t, to.SignIn)); got != 0 {
				t.Errorf("%d keys are there that were removed, or are not to be restored", got)
			}
			for n, hub := range from.hubs {
				was, _, err := from.service.Hub(t.Context(), hub)
				if err != nil {
					t.Fatal(err)
				}
				is, _, err := to.service.Hub(t.Context(), hub)
				if err != nil || is.Epoch.ID == was.Epoch.ID || is.OrgID != was.OrgID ||
					is.OwnLog != was.OwnLog {
					t.Errorf("hub %s is %+v, %v", hub, is, err)
				}
				page, err := to.logs.Page(t.Context(), hub, "", 500)
				if err != nil {
					t.Fatal(err)
				}
				events := 30
				if !hubLogs || n == 1 {
					events = 0
				}
				if len(page.Events) != events {
					t.Errorf("hub %d has %d events, want %d", n, len(page.Events), events)
				}
				if !hubLogs {
					continue
				}
				stream := streams.HubStream(hub)
				got, want := messages(
					t, to.conns.Shard(hub), stream,
				), messages(t, from.conns.Shard(hub), stream)[:30]
				if !slices.Equal(got, want) {
					t.Errorf(
						"the log of hub %d has %d messages, and had %d", n, len(got), len(want),
					)
				}
			}
		})
	}
}

// TestSecrets: the backup has the authority's key in it. Nobody else may read it.
func TestSecrets(t *testing.T) {
	t.Parallel()
	dir, _ := newInstallation(t, 1, 0).take(true)
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if want := os.FileMode(0o600); err == nil && !info.IsDir() && info.Mode() != want {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		if err == nil && info.IsDir() && info.Mode().Perm() != 0o700 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestExpired restores hub logs of which everything is older than the retention by then: they are
// empty, and end where they ended.
func TestExpired(t *testing.T) {
	t.Parallel()
	from := newInstallation(t, 1, 20)
	dir, m := from.take(true)
	hub := from.hubs[0]
	for _, f := range m.Files {
		if f.Stream != nil && isHubLog(f.Stream.Name) {
			f.Stream.Config = []byte(
				strings.Replace(
					string(f.Stream.Config), `"max_age":3600000000000`, `"max_age":100000000`, 1,
				),
			)
		}
	}
	<-time.After(200 * time.Millisecond) // of which everything is older
	to := &installation{t: t, conns: streamstest.Start(t)}
	if err := Restore(t.Context(), to.conns, m, RestoreConfig{
		Dir: dir, Replicas: 1, Origin: origin,
	}); err != nil {
		t.Fatal(err)
	}
	to.open()
	for deadline := time.Now().Add(time.Minute); ; {
		state, err := jsapi.New(to.conns.Shard(hub)).Info(t.Context(), streams.HubStream(hub))
		if err != nil || state.State.LastSeq != 20 {
			t.Fatalf("the log is %+v, %v", state, err)
		}
		if state.State.Msgs == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d events are left", state.State.Msgs)
		}
		<-time.After(20 * time.Millisecond)
	}
	if last := to.append(hub, 0, 1); last != 21 {
		t.Errorf("the next event has the sequence %d", last)
	}
}
