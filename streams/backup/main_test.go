package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/installationtest"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/outbox"
	"hubcloud/streams/streamstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }

// testInstallation is an installation on a broker of its own.
type testInstallation struct {
	*installationtest.Installation
	*streams.Buckets
	t    testing.TB
	hubs []domain.HubID
}

// newTestInstallation returns an installation with a queued mail and that many hubs, each with that
// many events in its log.
func newTestInstallation(t testing.TB, hubs, events int) *testInstallation {
	t.Helper()
	i := openTestInstallation(t, streamstest.Start(t))
	i.CreateOrganization(t)
	i.put(i.Buckets.Installation, "settings", `{"id":"x"}`)
	box, err := outbox.Open(t.Context(), i.Conns, outbox.Config{})
	if err == nil {
		err = box.Put(t.Context(), outbox.Mail{
			ID: "mail-1", Recipient: "ann@example.org", Expires: time.Now().Add(time.Hour),
			Content: []byte("mail"),
		})
	}
	streamstest.Must(t, err)
	for n := range hubs {
		i.addHub(n, events)
	}
	return i
}

// openTestInstallation opens the installation on a broker.
func openTestInstallation(t testing.TB, conns *streams.Conns) *testInstallation {
	t.Helper()
	opened := installationtest.Open(t, conns, installationtest.Config{})
	return &testInstallation{Installation: opened, Buckets: opened.Buckets, t: t}
}

// addHub adds a hub with presence, an ingest checkpoint and that many events.
func (i *testInstallation) addHub(n, events int) {
	i.t.Helper()
	hub := domain.HubID(fmt.Sprintf("hub-0000-0000-%04d", n))
	i.RegisterHub(i.t, hub)
	i.AddHub(i.t, hub)
	i.hubs = append(i.hubs, hub)
	i.put(i.Presence, string(hub), fmt.Sprintf(`{"hub":%d}`, n))
	i.put(i.Checkpoints, string(hub), fmt.Sprintf(`{"through":%d}`, n))
	if events > 0 {
		i.appendEvents(hub, 0, events)
	}
}

func (i *testInstallation) put(kv jetstream.KeyValue, key, value string) {
	i.t.Helper()
	if _, err := kv.Put(i.t.Context(), key, []byte(value)); err != nil {
		i.t.Fatal(err)
	}
}

// appendEvents appends events to a hub's log whose last sequence is expected, and returns the last
// sequence.
func (i *testInstallation) appendEvents(hub domain.HubID, expected uint64, count int) uint64 {
	i.t.Helper()
	state, _, err := i.Directory.Hub(i.t.Context(), hub)
	streamstest.Must(i.t, err)
	records := make([]journal.Record, count)
	for n := range records {
		payload, err := json.Marshal(domain.HubEvent{
			Type: "channel.observed", HubID: hub, Time: domain.FormatTime(time.Now()),
			Data: json.RawMessage(fmt.Sprintf(`{"value":%d}`, n)),
		})
		streamstest.Must(i.t, err)
		records[n] = journal.Record{Kind: journal.KindHubEvent,
			Payload: payload, EpochID: state.Epoch.ID,
			OwnLog: "a", Through: expected + uint64(n) + 1,
		}
	}
	last, err := i.HubLogs.Append(i.t.Context(), hub, expected, records)
	streamstest.Must(i.t, err)
	return last
}

// writeBackup writes a backup to a new folder.
func (i *testInstallation) writeBackup(hubLogs bool) (string, Manifest) {
	i.t.Helper()
	dir := filepath.Join(i.t.TempDir(), "backup")
	m, err := Write(i.t.Context(), i.Conns, Config{
		Dir: dir, Format: 1, HubLogs: hubLogs, Installation: "x",
		Files: map[string][]byte{
			"ca/ca.pem": []byte("certificate"), "ca/ca-key.pem": []byte("key"),
		},
	})
	streamstest.Must(i.t, err)
	return dir, m
}

// restoreConfig is the configuration of a restore to one server.
func restoreConfig(dir string) RestoreConfig {
	return RestoreConfig{Dir: dir, Origin: installationtest.Operator}
}

// restoreBackup restores a backup to a new broker and opens the installation on it.
func restoreBackup(t testing.TB, dir string) *testInstallation {
	t.Helper()
	m, err := Check(t.Context(), dir, 1, nil)
	streamstest.Must(t, err)
	conns := streamstest.Start(t)
	streamstest.Must(t, Restore(t.Context(), conns, m, restoreConfig(dir)))
	if err := Unfinished(t.Context(), conns); err != nil {
		t.Errorf("Unfinished after the restore: got %v, want nil", err)
	}
	return openTestInstallation(t, conns)
}

// messages returns the sequence, time, subject, headers and data of each message of a stream.
func messages(t testing.TB, nc *nats.Conn, stream string) []string {
	t.Helper()
	api := jsapi.New(nc)
	info, err := api.Info(t.Context(), stream)
	streamstest.Must(t, err)
	var all []string
	for sequence := max(info.State.FirstSeq, 1); sequence <= info.State.LastSeq; sequence++ {
		msg, err := api.Get(t.Context(), stream, sequence)
		if err != nil {
			t.Fatalf("stream %s: sequence %d: %v", stream, sequence, err)
		}
		all = append(all, fmt.Sprint(
			msg.Sequence, msg.Time.UnixNano(), msg.Subject, msg.Header, string(msg.Data),
		))
	}
	return all
}

// values returns the values of a bucket by their keys.
func values(t testing.TB, kv jetstream.KeyValue) map[string]string {
	t.Helper()
	all := map[string]string{}
	keys, err := kv.Keys(t.Context())
	if err != nil && !errors.Is(err, jetstream.ErrNoKeysFound) {
		t.Fatal(err)
	}
	for _, key := range keys {
		e, err := kv.Get(t.Context(), key)
		streamstest.Must(t, err)
		all[key] = string(e.Value())
	}
	return all
}
