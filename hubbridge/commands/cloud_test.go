package commands_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"hubcloud/domain"
	"hubcloud/hubbridge/commands"
	"hubcloud/streams"
	"hubcloud/streams/feed"
	"hubcloud/streams/once"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/views/viewstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }

const (
	orgA = "01935f2e-0000-7000-8000-00000000000a"
	orgB = "01935f2e-0000-7000-8000-00000000000b"
)

// testCloud is a broker with replicas that send commands and one hub.
type testCloud struct {
	t       testing.TB
	broker  *streamstest.Broker
	conns   *streams.Conns
	buckets *streams.Buckets
	hub     *hub
}

func newTestCloud(t testing.TB) *testCloud {
	t.Helper()
	broker := streamstest.New(t)
	cloud := &testCloud{t: t, broker: broker, conns: broker.Connect(t)}
	var err error
	if cloud.buckets, err = streams.OpenBuckets(t.Context(), cloud.conns, 1); err != nil {
		t.Fatal(err)
	}
	viewstest.Open(t, cloud.conns, time.Hour)
	cloud.hub = newHub(t, broker.Connect(t), "hub-aaaa-bbbb-cccc")
	return cloud
}

// replica is one process that sends commands.
type replica struct {
	*commands.Commands
	t     testing.TB
	conns *streams.Conns
	logs  *feed.Logs
	// stopJournal ends the replica's part in the journal.
	stopJournal func()
	registry    *prometheus.Registry
	end         sync.Once
	caller      *commands.Caller
	keys        *once.Keys
}

// setup is the configuration of a replica.
type setup struct {
	commands.Config
	keys once.Config
	// broker are options of its connections.
	broker []nats.Option
	// append replaces the append of a record; store stores the record.
	append func(payload []byte, store func() (uint64, error)) (uint64, error)
}

// option changes the configuration of a replica.
type option func(*setup)

func hubTimeout(d time.Duration) option { return func(s *setup) { s.HubTimeout = d } }

// appends are event logs of hubs with setup.append.
type appends struct {
	commands.Logs
	append func(payload []byte, store func() (uint64, error)) (uint64, error)
}

func (l appends) AppendCommand(
	ctx context.Context, hub domain.HubID, payload []byte,
) (uint64, error) {
	store := func() (uint64, error) { return l.Logs.AppendCommand(ctx, hub, payload) }
	if l.append == nil {
		return store()
	}
	return l.append(payload, store)
}

// replica starts a replica, which ends with the test unless it is killed before.
func (cloud *testCloud) replica(id string, options ...option) *replica {
	cloud.t.Helper()
	must := func(err error) {
		cloud.t.Helper()
		streamstest.Must(cloud.t, err)
	}
	p := &replica{t: cloud.t, registry: prometheus.NewRegistry()}
	logger := slog.New(slog.DiscardHandler)
	cfg := setup{
		Config: commands.Config{HubTimeout: 10 * time.Second, Logger: logger, Metrics: p.registry},
		keys:   once.Config{ReplicaID: id, Logger: logger},
	}
	for _, o := range options {
		o(&cfg)
	}
	p.conns = cloud.broker.Connect(cloud.t, cfg.broker...)
	var err error
	p.keys, err = once.New(p.conns, cfg.keys)
	must(err)
	p.caller, err = commands.NewCaller(
		p.conns, cloud.hub, commands.CallerConfig{Timeout: cfg.HubTimeout, Logger: logger},
	)
	must(err)
	journal, stopJournal := viewstest.Follow(cloud.t, p.conns, time.Hour)
	p.stopJournal = stopJournal
	p.logs, err = feed.New(p.conns, feed.Config{
		Journal: journal, Retention: time.Hour, Logger: logger,
		Epoch: func(domain.HubID) (domain.Epoch, bool) { return domain.Epoch{}, false },
	})
	must(err)
	cfg.Keys = p.keys
	p.Commands, err = commands.New(
		appends{p.logs, cfg.append}, commands.NewDevices(p.caller, nil, nil), cfg.Config,
	)
	must(err)
	cloud.t.Cleanup(p.stop)
	return p
}

// stop ends a replica in order.
func (p *replica) stop() {
	p.end.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		p.Close(ctx)
		p.keys.Close()
		p.caller.Close()
		p.logs.Close()
		p.stopJournal()
		p.conns.Close()
	})
}

// kill ends a replica as kill -9 does: its later writes do not reach the broker.
func (p *replica) kill() {
	p.end.Do(func() {
		p.conns.Close()
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		p.Close(ended)
		p.caller.Close()
		p.logs.Close()
	})
}

// count returns the sum of a counter or a gauge.
func (p *replica) count(name string) (sum float64) {
	p.t.Helper()
	families, err := p.registry.Gather()
	streamstest.Must(p.t, err)
	for _, family := range families {
		if family.GetName() == "hubcloud_hubbridge_commands_"+name {
			for _, metric := range family.GetMetric() {
				sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// command returns a command for the cloud's hub: unlock device 3. key is the idempotency key.
func (cloud *testCloud) command(key string) domain.Command {
	return domain.Command{
		OrgID: orgA, HubID: cloud.hub.id, DeviceID: 3, Key: "lock", Value: json.RawMessage(`false`),
		IdempotencyKey: key,
	}
}

func origin() domain.Origin {
	return domain.Origin{
		At:        time.Now(),
		Actor:     domain.Actor{Kind: domain.ActorKey, ID: "K1"},
		RequestID: "R1",
	}
}

func (p *replica) send(c domain.Command) (domain.Channel, error) {
	sent, err := p.Send(p.t.Context(), origin(), c)
	return sent.Channel, err
}

// outcome is the result of Send in a form that can be compared.
type outcome struct {
	channel string
	err     string
}

func (p *replica) sent(c domain.Command) outcome {
	channel, err := p.send(c)
	if err != nil {
		return outcome{err: err.Error()}
	}
	raw, err := json.Marshal(channel)
	if err != nil {
		p.t.Error(err)
	}
	return outcome{channel: string(raw)}
}

func wantCode(t testing.TB, err error, code domain.Code) {
	t.Helper()
	if err == nil || domain.CodeOf(err) != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

func (cloud *testCloud) wantAccepted(channel domain.Channel, err error) {
	cloud.t.Helper()
	if err != nil || channel.Status != domain.ChannelPending || string(channel.Desired) != "false" {
		cloud.t.Errorf("Send: got %+v, %v, want a pending channel with false desired", channel, err)
	}
}

// record is a record of a command in the hub's event log.
type record struct {
	Type      string
	CommandID string `json:"command_id"`
	RequestID string `json:"request_id"`
	Outcome   string
}

// records returns the records in the hub's event log, in order.
func (cloud *testCloud) records() (all []record) {
	cloud.t.Helper()
	js, err := jetstream.New(cloud.conns.Shard(cloud.hub.id))
	streamstest.Must(cloud.t, err)
	stream, err := js.Stream(cloud.t.Context(), streams.HubStream(cloud.hub.id))
	if err != nil {
		return nil
	}
	for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
		msg, err := stream.GetMsg(cloud.t.Context(), seq)
		if err != nil || msg.Subject != streams.CommandSubject(cloud.hub.id) {
			cloud.t.Fatalf("record %d: %v, %v", seq, msg, err)
		}
		var one record
		streamstest.Must(cloud.t, json.Unmarshal(msg.Data, &one))
		all = append(all, one)
	}
	return all
}

// withdrawn is the outcome of a command that was recorded and not sent, because its key was taken.
const withdrawn = "withdrawn"

// sentRecords returns the records without those of withdrawn commands, which the hub must not have
// got.
func (cloud *testCloud) sentRecords() []record {
	cloud.t.Helper()
	all := cloud.records()
	ids := map[string]bool{}
	for _, one := range all {
		if one.Outcome == withdrawn {
			ids[one.CommandID] = true
		}
	}
	for _, id := range cloud.hub.ids() {
		if ids[id] {
			cloud.t.Errorf("the hub got command %s, which was withdrawn", id)
		}
	}
	return slices.DeleteFunc(all, func(one record) bool { return ids[one.CommandID] })
}

// outcomes returns the records of the commands that were not withdrawn, in short: "requested" or the
// outcome.
func (cloud *testCloud) outcomes() string {
	cloud.t.Helper()
	var all []string
	for _, one := range cloud.sentRecords() {
		short := strings.TrimPrefix(one.Type, "command.")
		if one.Outcome != "" {
			short = one.Outcome
		}
		all = append(all, short)
	}
	return strings.Join(all, " ")
}

// wantRecords waits until the hub's event log has the records: an outcome is recorded after the
// caller has its answer. It ignores the order, since the outcome of one command may be recorded
// after the request of the next.
func (cloud *testCloud) wantRecords(want string) {
	cloud.t.Helper()
	sorted := func(outcomes string) string {
		all := strings.Fields(outcomes)
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	streamstest.Eventually(cloud.t, "the event log has "+want, func() bool {
		return sorted(cloud.outcomes()) == sorted(want)
	})
}

// reserved returns the number of keys in the bucket.
func (cloud *testCloud) reserved() int {
	cloud.t.Helper()
	status, err := cloud.buckets.Idempotency.Status(cloud.t.Context())
	streamstest.Must(cloud.t, err)
	return int(status.Values())
}
