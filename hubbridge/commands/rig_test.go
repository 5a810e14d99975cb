package commands_test

import (
	"context"
	"encoding/json"
	"fmt"
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
	"hubcloud/hubbridge/idempotency"
	"hubcloud/hubbridge/protocol"
	"hubcloud/hubbridge/rpc"
	"hubcloud/streams"
	"hubcloud/streams/hublog"
	"hubcloud/streams/streamstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }

const (
	orgA = "01935f2e-0000-7000-8000-00000000000a"
	orgB = "01935f2e-0000-7000-8000-00000000000b"
)

// rig is an installation of replicas that send commands, over a real broker. Its hub is a NATS
// client of its shard's account, which is what MQTT makes of one.
type rig struct {
	t       testing.TB
	broker  *streamstest.Broker
	conns   *streams.Conns
	buckets *streams.Buckets
	hub     *hub
}

func newRig(t testing.TB) *rig {
	t.Helper()
	broker := streamstest.New(t)
	r := &rig{t: t, broker: broker, conns: broker.Connect(t)}
	var err error
	if r.buckets, err = streams.OpenBuckets(t.Context(), r.conns, 1); err != nil {
		t.Fatal(err)
	}
	r.hub = newHub(t, broker.Connect(t))
	return r
}

// replica is one process that sends commands.
type replica struct {
	*commands.Commands
	t        testing.TB
	conns    *streams.Conns
	logs     *hublog.Logs
	registry *prometheus.Registry
	end      sync.Once
	caller   *rpc.Caller
	keys     *idempotency.Keys
}

// change alters what a replica works with.
type change func(*commands.Config, *idempotency.Config)

func hubTimeout(d time.Duration) change {
	return func(cfg *commands.Config, _ *idempotency.Config) { cfg.HubTimeout = d }
}

// replica starts a replica under that id; it ends with the test, unless it is killed before.
func (r *rig) replica(id string, changes ...change) *replica {
	return r.replicaWith(id, nil, changes...)
}

// replicaWith puts something between a replica and the hubs' logs.
func (r *rig) replicaWith(
	id string, between func(commands.Logs) commands.Logs, changes ...change,
) *replica {
	r.t.Helper()
	p := &replica{t: r.t, conns: r.broker.Connect(r.t), registry: prometheus.NewRegistry()}
	cfg := commands.Config{
		HubTimeout: 10 * time.Second,
		Log:        slog.New(slog.DiscardHandler),
		Metrics:    p.registry,
	}
	keys := idempotency.Config{ReplicaID: id, Log: cfg.Log}
	for _, c := range changes {
		c(&cfg, &keys)
	}
	cfg.Keys = idempotency.New(p.conns, keys)
	p.keys = cfg.Keys
	var err error
	p.caller, err = rpc.NewCaller(
		p.conns, r.hub, rpc.Config{Timeout: cfg.HubTimeout, Logger: cfg.Log},
	)
	if err != nil {
		r.t.Fatal(err)
	}
	p.logs, err = hublog.New(p.conns, hublog.Config{
		Retention: time.Hour, Log: cfg.Log,
		Epoch: func(domain.HubID) (domain.Epoch, bool) { return domain.Epoch{}, false },
	})
	if err != nil {
		r.t.Fatal(err)
	}
	logs := commands.Logs(p.logs)
	if between != nil {
		logs = between(logs)
	}
	p.Commands = commands.New(logs, rpc.NewDevices(p.caller, nil, nil), cfg)
	r.t.Cleanup(p.stop)
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
		p.conns.Close()
	})
}

// kill ends a replica as kill -9 does: nothing that it would still write reaches the broker.
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

// count gives the sum of a counter or a gauge.
func (p *replica) count(name string) (sum float64) {
	p.t.Helper()
	families, err := p.registry.Gather()
	if err != nil {
		p.t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "hubcloud_hubbridge_commands_"+name {
			for _, metric := range family.GetMetric() {
				sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// command is one for the rig's hub: unlock device 3. Key is the idempotency key.
func (r *rig) command(key string) domain.Command {
	return domain.Command{
		OrgID: orgA, HubID: r.hub.id, DeviceID: 3, Key: "lock", Value: json.RawMessage(`false`),
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
	return p.Send(p.t.Context(), origin(), c)
}

// outcome is what a caller gets, in a form that can be compared.
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
		t.Errorf("%v, wanted %s", err, code)
	}
}

func (r *rig) wantAccepted(channel domain.Channel, err error) {
	r.t.Helper()
	if err != nil || channel.Status != domain.ChannelPending || string(channel.Desired) != "false" {
		r.t.Errorf("%+v, %v", channel, err)
	}
}

// record is what the hub's log says of a command.
type record struct {
	Type      string
	CommandID string `json:"command_id"`
	OrgID     string `json:"org_id"`
	HubID     string `json:"hub_id"`
	DeviceID  int64  `json:"device_id"`
	Key       string
	Endpoint  int64
	Value     json.RawMessage
	Time      time.Time
	Actor     domain.Actor
	RequestID string `json:"request_id"`
	Outcome   string
	Message   string
}

// records gives the records of commands in the hub's log, in order.
func (r *rig) records() (all []record) {
	r.t.Helper()
	js, err := jetstream.New(r.conns.Shard(r.hub.id))
	if err != nil {
		r.t.Fatal(err)
	}
	stream, err := js.Stream(r.t.Context(), streams.HubStream(r.hub.id))
	if err != nil {
		return nil
	}
	for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
		msg, err := stream.GetMsg(r.t.Context(), seq)
		if err != nil || msg.Subject != streams.CommandSubject(r.hub.id) {
			r.t.Fatalf("record %d: %v, %v", seq, msg, err)
		}
		var one record
		if err := json.Unmarshal(msg.Data, &one); err != nil {
			r.t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

// told gives the records in words: requested, and what came of it.
func (r *rig) told() string {
	r.t.Helper()
	var words []string
	for _, one := range r.records() {
		word := strings.TrimPrefix(one.Type, "command.")
		if one.Outcome != "" {
			word = one.Outcome
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// wantTold waits until the log holds that: an outcome is recorded after the caller has its answer.
// One that comes a moment later than another command may be behind it, so the order of sorts is not
// looked at.
func (r *rig) wantTold(want string) {
	r.t.Helper()
	sorted := func(words string) string {
		all := strings.Fields(words)
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	eventually(r.t, "the log holds "+want, func() bool { return sorted(r.told()) == sorted(want) })
}

// reserved says how many keys are in the bucket.
func (r *rig) reserved() int {
	r.t.Helper()
	status, err := r.buckets.Idempotency.Status(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return int(status.Values())
}

// hub is a hub that keeps to the hub link, as far as a test has it: it runs a command id once and
// answers a repeat with its first answer.
type hub struct {
	t  testing.TB
	id domain.HubID
	nc *nats.Conn

	mu      sync.Mutex
	offline bool
	// act gives what becomes of a command that is run for the first time: the answer after its id,
	// to be remembered or not. nil accepts.
	act func(command hubCommand) (answer string, remember bool)
	// before is done before each answer; nil is nothing.
	before  func(hubCommand)
	answers map[string]string
	asked   []string
	ran     []string
}

type hubCommand struct {
	CommandID string `json:"command_id"`
	DeviceID  int64  `json:"device_id"`
	Key       string
	Endpoint  int64
	Value     json.RawMessage
}

func newHub(t testing.TB, conns *streams.Conns) *hub {
	t.Helper()
	return newHubOf(t, conns, "hub-aaaa-bbbb-cccc")
}

func newHubOf(t testing.TB, conns *streams.Conns, id domain.HubID) *hub {
	t.Helper()
	h := &hub{t: t, id: id, answers: map[string]string{}}
	h.nc = conns.Shard(h.id)
	sub, err := h.nc.Subscribe(streams.RequestSubject(h.id), func(msg *nats.Msg) {
		var request protocol.Request
		var command hubCommand
		if json.Unmarshal(msg.Data, &request) != nil ||
			json.Unmarshal(request.Params, &command) != nil ||
			request.Method != protocol.MethodChannelsCommand {
			t.Errorf("request %q", msg.Data)
			return
		}
		answer := h.take(command)
		h.mu.Lock()
		before := h.before
		h.mu.Unlock()
		go func() {
			if before != nil {
				before(command)
			}
			if answer != "" {
				_ = h.nc.Publish(
					streams.ResponseSubject(h.id, strings.ReplaceAll(request.Token, "/", ".")),
					fmt.Appendf(nil, `{"id":%q,%s}`, request.ID, answer),
				)
			}
		}()
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sub.Unsubscribe() })
	if err := h.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return h
}

// accepts is the answer of a hub that accepts a command; at tells runs apart.
func accepts(c hubCommand, at int) string {
	return fmt.Sprintf(
		`"result":{"channel":{"key":%q,"endpoint":%d,"kind":%q,"unit":null,"available":true,"value":true,"observed_at":"2026-01-02T03:04:05Z",`+
			`"desired":%s,"desired_at":"2026-01-02T03:04:06.%06dZ","status":"pending"}}`,
		c.Key,
		c.Endpoint,
		c.Key,
		c.Value,
		at,
	)
}

func refuses(kind string) string {
	return fmt.Sprintf(`"error":{"type":%q,"message":"because"}`, kind)
}

func (h *hub) take(c hubCommand) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, c.CommandID)
	if answer, ok := h.answers[c.CommandID]; ok {
		return answer
	}
	answer, remember := accepts(c, len(h.ran)+1), true
	if h.act != nil {
		answer, remember = h.act(c)
	}
	if remember {
		h.ran = append(h.ran, c.CommandID)
		h.answers[c.CommandID] = answer
	}
	return answer
}

func (h *hub) set(change func(h *hub)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(h)
}

// answersAll makes the hub answer everything alike; remembered answers are those of a command that
// it ran.
func (h *hub) answersAll(answer string, remember bool) {
	h.set(func(h *hub) { h.act = func(hubCommand) (string, bool) { return answer, remember } })
}

// wantRan holds how many commands the hub was asked for, and how many it ran.
func (h *hub) wantRan(asked, ran int) {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.asked) != asked || len(h.ran) != ran {
		h.t.Errorf(
			"asked %d times and ran %d; wanted %d and %d", len(h.asked), len(h.ran), asked, ran,
		)
	}
}

// ids gives the command ids that the hub was asked to run, each once.
func (h *hub) ids() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	ids := slices.Clone(h.asked)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Online and Fetch make the hub the presence that a caller asks.
func (h *hub) Online(domain.HubID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.offline
}

func (h *hub) Fetch(context.Context, domain.HubID) (domain.Presence, bool, error) {
	return domain.Presence{Online: h.Online("")}, true, nil
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 15 s: %s", what)
		}
	}
}
