package upgrade

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
	"hubcloud/test/natscluster"
)

// fromFlag is a program from before there was a journal, for example of the commit before "Append
// to hub logs through the journals".
var fromFlag = flag.String(
	"upgrade.from", "", "program without a journal from which TestCluster upgrades a cluster",
)

const (
	// clusterRetention is short enough for all events from before the upgrade to expire in the test.
	clusterRetention = 3 * time.Minute
	eventsBefore     = 300
)

// TestCluster upgrades a cluster of three nats-servers with three copies of every hub log, as the
// runbook says: every replica of the program without a journal is stopped, then the new ones start.
// Events and cursors stay, hubs continue, the old program does not start any more, and once the
// journal has all that the hub logs have, these get one copy.
func TestCluster(t *testing.T) {
	if *fromFlag == "" {
		t.Skip("NOT TRIED: only with -upgrade.from")
	}
	program := harness.Binary(t)
	// The servers are configured by the old program.
	t.Setenv("HUBCLOUD_TEST_BINARY", *fromFlag)
	broker := natscluster.StartOnLoopback(t, "2")
	t.Setenv("HUBCLOUD_TEST_BINARY", program)
	broker.Arguments = append(broker.Arguments, "--event-retention", clusterRetention.String())
	var replicas []*harness.Service
	for range 2 {
		replicas = append(replicas, oldReplica(t, broker))
		replicas[len(replicas)-1].Begin()
	}
	tenant := harness.NewTenant(t, replicas[0], "Upgraded")
	var hubs []*harness.RawHub
	for range 6 {
		hub := harness.NewRawHub(t, replicas[0])
		hub.Enroll()
		hub.Connect()
		hub.Hello("log-1", 1, 0)
		hub.WaitAck("log-1", 0)
		tenant.Add(hub.Serial)
		hub.EventsFrom("log-1", 1, eventsBefore)
		hub.WaitAck("log-1", eventsBefore)
		hubs = append(hubs, hub)
	}
	conns := connectTo(t, broker)
	for _, hub := range hubs {
		if n := copies(t, conns, hub.ID); n != 3 {
			t.Fatalf("the log of %s has %d copies before the upgrade, want 3", hub.ID, n)
		}
	}
	want := map[string][]harness.Event{}
	for _, hub := range hubs {
		hub.Disconnect()
		tenant.Await(hub.ID, "", "the hub is offline", func(e harness.Event) bool {
			return e.Type == "hub.disconnected"
		})
		want[hub.ID] = tenant.AllEvents(hub.ID, "")
	}

	for _, replica := range replicas {
		replica.Stop()
	}
	for _, replica := range replicas {
		replica.Program = program
		replica.Begin()
	}
	checkEvents := func(when string) {
		t.Helper()
		for _, replica := range replicas {
			client := harness.NewClient(t, replica.Base(), tenant.Key)
			for _, hub := range hubs {
				for _, n := range []int{0, 1, eventsBefore / 2, len(want[hub.ID])} {
					after := ""
					if n > 0 {
						after = want[hub.ID][n-1].Cursor
					}
					got := client.AllEvents(hub.ID, after)
					if len(got) < len(want[hub.ID])-n {
						t.Fatalf("%s: %s after event %d: got %d events, want at least %d", when,
							hub.ID, n, len(got), len(want[hub.ID])-n)
					}
					for i, e := range want[hub.ID][n:] {
						if got[i].Cursor != e.Cursor || string(got[i].Data) != string(e.Data) {
							t.Fatalf("%s: %s: got %+v, want %+v", when, hub.ID, got[i], e)
						}
					}
				}
			}
		}
	}
	checkEvents("after the upgrade")
	for _, hub := range hubs {
		hub.Connect()
		hub.Hello("log-1", 1, eventsBefore)
		hub.WaitAck("log-1", eventsBefore)
		hub.EventsFrom("log-1", eventsBefore+1, 2*eventsBefore)
		hub.WaitAck("log-1", 2*eventsBefore)
	}
	checkEvents("with new events")
	for _, hub := range hubs {
		if n := copies(t, conns, hub.ID); n != 3 {
			t.Errorf("the log of %s has %d copies while its old events are kept, want 3", hub.ID, n)
		}
	}
	oldProgramFails(t, broker)
	expectDoctor(t, broker)

	t.Logf("waiting %v for the old events to expire", clusterRetention)
	harness.Elapse(clusterRetention + 10*time.Second)
	cursors := map[string]string{}
	for _, hub := range hubs {
		hub.EventsFrom("log-1", 2*eventsBefore+1, 2*eventsBefore+10)
		hub.WaitAck("log-1", 2*eventsBefore+10)
		cursors[hub.ID] = tenant.Head(hub.ID)
	}
	expireJournals(t, conns)
	for _, replica := range replicas { // each start compares the hub logs with the journal
		replica.Stop()
		replica.Begin()
	}
	for _, hub := range hubs {
		streamstest.EventuallyWithin(t, 5*time.Minute, hub.ID+" has one copy", func() bool {
			return copies(t, conns, hub.ID) == 1
		})
		hub.Hello("log-1", 1, 2*eventsBefore+10)
		hub.WaitAck("log-1", 2*eventsBefore+10)
		hub.EventsFrom("log-1", 2*eventsBefore+11, 2*eventsBefore+20)
		hub.WaitAck("log-1", 2*eventsBefore+20)
		got := tenant.AllEvents(hub.ID, cursors[hub.ID])
		numbers := 0
		for _, e := range got {
			if e.Type == "channel.observed" {
				numbers++
			}
		}
		if numbers != 10 {
			t.Errorf("%s after the last cursor: got\n%s\nwant ten events of the hub", hub.ID,
				harness.FormatEvents(got))
		}
	}
	expectDoctor(t, broker)
}

func connectTo(t *testing.T, broker *natscluster.Cluster) *streams.Conns {
	t.Helper()
	access, err := streams.ReadCredentials(argument(t, broker, "--nats-credentials"))
	if err != nil {
		t.Fatal(err)
	}
	access.URL = argument(t, broker, "--nats-url")
	conns, err := streams.Connect(t.Context(), access)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conns.Close)
	return conns
}

// argument returns the value of a flag with which replicas use the cluster.
func argument(t *testing.T, broker *natscluster.Cluster, flag string) string {
	t.Helper()
	i := slices.Index(broker.Arguments, flag)
	if i < 0 {
		t.Fatalf("arguments %v: want %s", broker.Arguments, flag)
	}
	return broker.Arguments[i+1]
}

// copies returns the number of copies that the stream of a hub's log is to have.
func copies(t *testing.T, conns *streams.Conns, hub string) int {
	t.Helper()
	id := domain.HubID(hub)
	info, err := jsapi.New(conns.Shard(id)).Info(t.Context(), streams.HubStream(id))
	if err != nil {
		t.Fatal(err)
	}
	return info.Config.Replicas
}

// expireJournals makes all commits expire that are older than the retention of hub logs, as they
// would an hour later.
func expireJournals(t *testing.T, conns *streams.Conns) {
	t.Helper()
	js, err := jetstream.New(conns.Cloud)
	if err != nil {
		t.Fatal(err)
	}
	for group := range 2 {
		stream, err := js.Stream(t.Context(), streams.JournalStream(group))
		if err != nil {
			t.Fatal(err)
		}
		config := stream.CachedInfo().Config
		config.MaxAge = clusterRetention
		if _, err := js.UpdateStream(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		streamstest.Eventually(t, fmt.Sprint("old commits of journal ", group, " expire"), func() bool {
			info, err := stream.Info(t.Context())
			return err == nil && info.State.FirstSeq > 1
		})
	}
}

// oldReplica returns a replica of the old program.
func oldReplica(t *testing.T, broker *natscluster.Cluster) *harness.Service {
	t.Helper()
	s := harness.Joining(t, harness.Place{}, broker.MQTT[0], broker.NATS, broker.Arguments...)
	s.Program = *fromFlag
	return s
}

// oldProgramFails starts a replica of the old program, which must not start.
func oldProgramFails(t *testing.T, broker *natscluster.Cluster) {
	t.Helper()
	old := oldReplica(t, broker)
	old.Launch()
	select {
	case <-old.Ended():
		t.Logf("the old program: %s", lastLine(old.Log()))
	case <-time.After(time.Minute):
		t.Fatalf("the old program runs after the upgrade:\n%s", old.Log())
	}
	if old.ExitCode() == 0 {
		t.Error("the old program: got exit code 0, want another")
	}
	if _, err := os.Stat(filepath.Join(old.Dir, "endpoints.json")); err == nil {
		t.Error("the old program was ready")
	}
}

func lastLine(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return lines[len(lines)-1]
}

// expectDoctor waits until the doctor finds nothing wrong with the journals and the hub logs.
func expectDoctor(t *testing.T, broker *natscluster.Cluster) {
	t.Helper()
	var last string
	streamstest.EventuallyWithin(t, 2*time.Minute, "the doctor reports no problem", func() bool {
		out, _, _ := harness.RunBinary(
			t, "doctor", "--json", "--nats-url", argument(t, broker, "--nats-url"),
			"--nats-credentials", argument(t, broker, "--nats-credentials"),
			"--postgres-url", argument(t, broker, "--postgres-url"),
		)
		last = out
		found := 0
		for line := range strings.Lines(out) {
			var c struct{ Name, Verdict, Detail string }
			if json.Unmarshal([]byte(line), &c) != nil {
				return false
			}
			if c.Name == "journal" || c.Name == "logs" || c.Name == "copies" {
				found++
				if c.Verdict != "ok" {
					return false
				}
			}
		}
		return found >= 2
	})
	t.Logf("doctor: %s", last)
}
