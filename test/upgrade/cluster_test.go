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
	u := newClusterUpgrade(t)
	for _, replica := range u.replicas {
		replica.Stop()
	}
	for _, replica := range u.replicas {
		replica.Program = program
		replica.Begin()
	}
	u.checkEvents("after the upgrade")
	for _, hub := range u.hubs {
		hub.Connect()
		hub.Hello("log-1", 1, eventsBefore)
		hub.WaitAck("log-1", eventsBefore)
		u.send(hub, eventsBefore+1, 2*eventsBefore)
	}
	u.checkEvents("with new events")
	u.expectCopies("while its old events are kept", 3)
	u.oldProgramFails()
	u.expectDoctor()

	t.Logf("waiting %v for the old events to expire", clusterRetention)
	harness.Elapse(clusterRetention + 10*time.Second)
	cursors := map[string]string{}
	for _, hub := range u.hubs {
		u.send(hub, 2*eventsBefore+1, 2*eventsBefore+10)
		cursors[hub.ID] = u.tenant.Head(hub.ID)
	}
	u.expireJournals()
	for _, replica := range u.replicas { // each start compares the hub logs with the journal
		replica.Stop()
		replica.Begin()
	}
	for _, hub := range u.hubs {
		streamstest.EventuallyWithin(t, 5*time.Minute, hub.ID+" has one copy", func() bool {
			return u.copies(hub.ID) == 1
		})
		hub.Hello("log-1", 1, 2*eventsBefore+10)
		hub.WaitAck("log-1", 2*eventsBefore+10)
		u.send(hub, 2*eventsBefore+11, 2*eventsBefore+20)
		events := slices.DeleteFunc(
			u.tenant.AllEvents(hub.ID, cursors[hub.ID]),
			func(e harness.Event) bool { return e.Type != "channel.observed" },
		)
		if len(events) != 10 {
			t.Errorf("%s after the last cursor: got\n%s\nwant ten events of the hub", hub.ID,
				harness.FormatEvents(events))
		}
	}
	u.expectDoctor()
}

// clusterUpgrade is a cluster with two replicas of the old program and hubs that have sent events.
type clusterUpgrade struct {
	t        *testing.T
	broker   *natscluster.Cluster
	conns    *streams.Conns
	replicas []*harness.Service
	tenant   *harness.Tenant
	hubs     []*harness.RawHub
	// want has the events before the upgrade, by hub.
	want map[string][]harness.Event
}

func newClusterUpgrade(t *testing.T) *clusterUpgrade {
	t.Helper()
	// The servers are configured by the old program.
	program := harness.Binary(t)
	t.Setenv("HUBCLOUD_TEST_BINARY", *fromFlag)
	u := &clusterUpgrade{
		t: t, broker: natscluster.StartOnLoopback(t, "2"), want: map[string][]harness.Event{},
	}
	t.Setenv("HUBCLOUD_TEST_BINARY", program)
	u.broker.Arguments = append(
		u.broker.Arguments, "--event-retention", clusterRetention.String(),
	)
	for range 2 {
		replica := u.oldReplica()
		replica.Begin()
		u.replicas = append(u.replicas, replica)
	}
	u.conns = u.connect()
	u.tenant = harness.NewTenant(t, u.replicas[0], "Upgraded")
	for range 6 {
		hub := harness.NewRawHub(t, u.replicas[0])
		hub.Enroll()
		hub.Connect()
		hub.Hello("log-1", 1, 0)
		hub.WaitAck("log-1", 0)
		u.tenant.Add(hub.Serial)
		u.send(hub, 1, eventsBefore)
		u.hubs = append(u.hubs, hub)
	}
	u.expectCopies("before the upgrade", 3)
	for _, hub := range u.hubs {
		hub.Disconnect()
		u.tenant.Await(hub.ID, "", "the hub is offline", func(e harness.Event) bool {
			return e.Type == "hub.disconnected"
		})
		u.want[hub.ID] = u.tenant.AllEvents(hub.ID, "")
	}
	return u
}

// send sends numbered events of a hub and waits for their ack.
func (u *clusterUpgrade) send(hub *harness.RawHub, first, last uint64) {
	u.t.Helper()
	hub.EventsFrom("log-1", first, last)
	hub.WaitAck("log-1", last)
}

// checkEvents checks that each replica has the events from before the upgrade, with their cursors,
// from the start and after several of these cursors.
func (u *clusterUpgrade) checkEvents(when string) {
	u.t.Helper()
	for _, replica := range u.replicas {
		client := harness.NewClient(u.t, replica.Base(), u.tenant.Key)
		for hub, want := range u.want {
			for _, n := range []int{0, 1, eventsBefore / 2, len(want)} {
				after := ""
				if n > 0 {
					after = want[n-1].Cursor
				}
				got := client.AllEvents(hub, after)
				if len(got) < len(want)-n {
					u.t.Fatalf("%s: %s after event %d: got %d events, want at least %d", when, hub, n,
						len(got), len(want)-n)
				}
				for i, e := range want[n:] {
					if got[i].Cursor != e.Cursor || string(got[i].Data) != string(e.Data) {
						u.t.Fatalf("%s: %s: got %+v, want %+v", when, hub, got[i], e)
					}
				}
			}
		}
	}
}

// expectCopies checks how many copies each hub log is to have.
func (u *clusterUpgrade) expectCopies(when string, want int) {
	u.t.Helper()
	for _, hub := range u.hubs {
		if n := u.copies(hub.ID); n != want {
			u.t.Errorf("the log of %s has %d copies %s, want %d", hub.ID, n, when, want)
		}
	}
}

// connect connects to the broker.
func (u *clusterUpgrade) connect() *streams.Conns {
	u.t.Helper()
	access, err := streams.ReadCredentials(u.argument("--nats-credentials"))
	if err != nil {
		u.t.Fatal(err)
	}
	access.URL = u.argument("--nats-url")
	conns, err := streams.Connect(u.t.Context(), access)
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(conns.Close)
	return conns
}

// argument returns the value of a flag with which replicas use the cluster.
func (u *clusterUpgrade) argument(flag string) string {
	u.t.Helper()
	i := slices.Index(u.broker.Arguments, flag)
	if i < 0 {
		u.t.Fatalf("arguments %v: want %s", u.broker.Arguments, flag)
	}
	return u.broker.Arguments[i+1]
}

// copies returns the number of copies that the stream of a hub's log is to have.
func (u *clusterUpgrade) copies(hub string) int {
	u.t.Helper()
	id := domain.HubID(hub)
	info, err := jsapi.New(u.conns.Shard(id)).Info(u.t.Context(), streams.HubStream(id))
	if err != nil {
		u.t.Fatal(err)
	}
	return info.Config.Replicas
}

// expireJournals makes all commits expire that are older than the retention of hub logs, as they
// would an hour later.
func (u *clusterUpgrade) expireJournals() {
	t := u.t
	t.Helper()
	js, err := jetstream.New(u.conns.Cloud)
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
func (u *clusterUpgrade) oldReplica() *harness.Service {
	u.t.Helper()
	b := u.broker
	s := harness.Joining(u.t, harness.Place{}, b.MQTT[0], b.NATS, b.Arguments...)
	s.Program = *fromFlag
	return s
}

// oldProgramFails starts a replica of the old program, which must not start.
func (u *clusterUpgrade) oldProgramFails() {
	t := u.t
	t.Helper()
	old := u.oldReplica()
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
func (u *clusterUpgrade) expectDoctor() {
	u.t.Helper()
	var found []string
	streamstest.EventuallyWithin(
		u.t, 2*time.Minute, "the doctor reports no problem of the logs and the journal",
		func() bool {
			out, _, _ := harness.RunBinary(
				u.t, "doctor", "--json", "--nats-url", u.argument("--nats-url"),
				"--nats-credentials", u.argument("--nats-credentials"),
				"--postgres-url", u.argument("--postgres-url"),
			)
			found = nil
			for line := range strings.Lines(out) {
				var c struct{ Name, Verdict, Detail string }
				if json.Unmarshal([]byte(line), &c) != nil {
					return false
				}
				if (c.Name == "journal" || c.Name == "logs") && c.Verdict == "ok" {
					found = append(found, c.Name+": "+c.Detail)
				}
			}
			return len(found) == 2
		},
	)
	u.t.Log(strings.Join(found, "\n"))
}
