package backup

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/directory"
	"hubcloud/streams/directory/directorytest"
	"hubcloud/streams/hublog"
	"hubcloud/streams/outbox"
	"hubcloud/streams/streamstest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, streamstest.Leaks()...)
}

var origin = domain.Origin{Actor: domain.Actor{Kind: domain.ActorOperator}}

// installation is one on a broker of its own.
type installation struct {
	t     testing.TB
	conns *streams.Conns
	*streams.Buckets
	log     *directory.Log
	service *directory.Service
	logs    *hublog.Logs
	org     string
	site    string
	hubs    []domain.HubID
}

// newInstallation has an organization with so many hubs, of which each has events in its log.
func newInstallation(t testing.TB, hubs, events int) *installation {
	t.Helper()
	i := &installation{t: t, conns: streamstest.Start(t)}
	i.open()
	if _, err := i.Installation.Put(t.Context(), "settings", []byte(`{"id":"x"}`)); err != nil {
		t.Fatal(err)
	}
	box, err := outbox.Open(t.Context(), i.conns, outbox.Config{})
	if err == nil {
		err = box.Put(
			t.Context(),
			outbox.Mail{
				ID:        "mail-1",
				Recipient: "ann@example.org",
				Expires:   time.Now().Add(time.Hour),
				Content:   []byte("to whom it may concern"),
			},
		)
	}
	if err == nil {
		i.org, _, err = i.service.CreateOrg(t.Context(), origin, "One", "owner@example.org")
	}
	if err != nil {
		t.Fatal(err)
	}
	site, err := i.service.CreateSite(t.Context(), origin, i.org, "Here")
	if err != nil {
		t.Fatal(err)
	}
	i.site = site.ID
	for n := range hubs {
		i.addHub(n, events)
	}
	return i
}

// open opens what is on the broker.
func (i *installation) open() {
	t := i.t
	t.Helper()
	var err error
	if i.Buckets, err = streams.OpenBuckets(t.Context(), i.conns, 1); err == nil {
		i.log, err = directory.Open(t.Context(), i.conns, 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	i.service = directory.NewService(i.log, directory.ServiceConfig{
		Environment: domain.EnvironmentDev, Presence: directorytest.Presence{},
		Connections: &directorytest.Connections{}, Logs: directorytest.LastSequence(5),
	})
	i.logs, err = hublog.New(
		i.conns,
		hublog.Config{
			Retention: time.Hour,
			Epoch: func(hub domain.HubID) (domain.Epoch, bool) {
				state, _, err := i.service.Hub(context.Background(), hub)
				return state.Epoch, err == nil &&
					state.OrgID != ""
			},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.logs.Close)
}

func (i *installation) addHub(n, events int) domain.HubID {
	i.t.Helper()
	ctx := i.t.Context()
	hub := domain.HubID(fmt.Sprintf("hub-0000-0000-%04d", n))
	err := i.service.RegisterHub(ctx, origin, hub, make([]byte, 32))
	if err == nil {
		_, err = i.service.AddHub(
			ctx, origin, domain.AddHub{OrgID: i.org, HubID: hub, SiteID: i.site},
		)
	}
	if err != nil {
		i.t.Fatal(err)
	}
	i.hubs = append(i.hubs, hub)
	i.put(i.Presence, string(hub), fmt.Sprintf(`{"hub":%d}`, n))
	i.put(i.Ledger, string(hub), fmt.Sprintf(`{"through":%d}`, n))
	if events > 0 {
		i.append(hub, 0, events)
	}
	return hub
}

func (i *installation) put(kv jetstream.KeyValue, key, value string) {
	i.t.Helper()
	if _, err := kv.Put(i.t.Context(), key, []byte(value)); err != nil {
		i.t.Fatal(err)
	}
}

// append stores events in a hub's log, behind expected.
func (i *installation) append(hub domain.HubID, expected uint64, count int) uint64 {
	i.t.Helper()
	state, _, err := i.service.Hub(i.t.Context(), hub)
	if err != nil {
		i.t.Fatal(err)
	}
	records := make([]hublog.Record, count)
	for n := range records {
		payload, err := json.Marshal(domain.HubEvent{
			Type: "channel.observed", HubID: hub, Time: domain.FormatTime(time.Now()),
			Data: json.RawMessage(fmt.Sprintf(`{"value":%d}`, n)),
		})
		if err != nil {
			i.t.Fatal(err)
		}
		records[n] = hublog.Record{
			Payload: payload,
			EpochID: state.Epoch.ID,
			OwnLog:  "a",
			Through: expected + uint64(n) + 1,
		}
	}
	last, err := i.logs.Append(i.t.Context(), hub, expected, records)
	if err != nil {
		i.t.Fatal(err)
	}
	return last
}

// take takes a backup into a folder of its own.
func (i *installation) take(hubLogs bool) (string, Manifest) {
	i.t.Helper()
	dir := filepath.Join(i.t.TempDir(), "backup")
	m, err := Write(i.t.Context(), i.conns, Config{
		Dir: dir, HubLogs: hubLogs, Installation: "x",
		Files: map[string][]byte{
			"ca/ca.pem": []byte("certificate"), "ca/ca-key.pem": []byte("key"),
		},
	})
	if err != nil {
		i.t.Fatal(err)
	}
	return dir, m
}

// restored restores a backup to a broker of its own.
func restored(t testing.TB, dir string) *installation {
	t.Helper()
	m, err := Check(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	i := &installation{t: t, conns: streamstest.Start(t)}
	if err := Restore(t.Context(), i.conns, m, RestoreConfig{
		Dir: dir, Replicas: 1, Origin: origin,
	}); err != nil {
		t.Fatal(err)
	}
	if err := Unfinished(t.Context(), i.conns); err != nil {
		t.Error(err)
	}
	i.open()
	return i
}

// messages gives what is in a stream: sequence, time, subject, headers and data of each message.
func messages(t testing.TB, nc *nats.Conn, stream string) []string {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	found, err := js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatalf("stream %s: %v", stream, err)
	}
	state := found.CachedInfo().State
	var all []string
	for sequence := max(state.FirstSeq, 1); sequence <= state.LastSeq; sequence++ {
		msg, err := found.GetMsg(t.Context(), sequence)
		if err != nil {
			t.Fatalf("stream %s: sequence %d: %v", stream, sequence, err)
		}
		all = append(
			all,
			fmt.Sprint(
				msg.Sequence, msg.Time.UnixNano(), msg.Subject, msg.Header, string(msg.Data),
			),
		)
	}
	return all
}

// values gives the keys of a bucket with their values.
func values(t testing.TB, kv jetstream.KeyValue) map[string]string {
	t.Helper()
	keys, err := kv.ListKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for key := range keys.Keys() {
		value, err := kv.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		all[key] = string(value.Value())
	}
	return all
}
