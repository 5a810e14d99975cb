package ingest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"hubcloud/domain"
	"hubcloud/hubbridge/ingest"
	"hubcloud/hubbridge/lease"
	"hubcloud/hubbridge/presence"
	"hubcloud/streams"
	"hubcloud/streams/installationtest"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/views/viewstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }

// testIngest is an installation without an MQTT listener: hubs are NATS clients of their shard's
// account, as which the broker treats MQTT clients.
type testIngest struct {
	*installationtest.Installation
	t         testing.TB
	broker    *streamstest.Broker
	hubs      *streams.Conns // the connections of the hubs
	retention time.Duration
	registry  *prometheus.Registry
	metrics   *ingest.Metrics
	made      int

	mu sync.Mutex
	// checks holds the hubs whose comparison with the broker's list was requested.
	checks []domain.HubID
	// connected holds the hubs that the broker last reported as connected.
	connected map[domain.HubID]bool
}

func newTestIngest(t testing.TB, retention time.Duration) *testIngest {
	t.Helper()
	broker := streamstest.New(t)
	r := &testIngest{
		Installation: installationtest.Open(
			t, broker.Connect(t), installationtest.Config{Retention: retention},
		),
		t:         t,
		broker:    broker,
		hubs:      broker.Connect(t),
		retention: retention,
		registry:  prometheus.NewRegistry(),
		connected: make(map[domain.HubID]bool),
	}
	r.metrics = ingest.NewMetrics(r.registry)
	r.CreateOrganization(t)
	return r
}

// change changes the configuration of a shard.
type change func(*ingest.Config)

// running is a running shard.
type running struct {
	*ingest.Shard
	r      *testIngest
	t      testing.TB
	cancel context.CancelCauseFunc
	ready  chan struct{}
	ended  chan error
	once   sync.Once
}

// shard runs the shard of a hub until the test or the caller ends it. It returns when the shard is
// ready.
func (r *testIngest) shard(hub domain.HubID, changes ...change) *running {
	r.t.Helper()
	s := r.start(hub, changes...)
	select {
	case <-s.ready:
	case err := <-s.ended:
		r.t.Fatalf("Run ended with %v before it was ready", err)
	}
	return s
}

// start is shard, but does not wait until the shard is ready.
func (r *testIngest) start(hub domain.HubID, changes ...change) *running {
	r.t.Helper()
	cfg := ingest.Config{
		Logs: r.HubLogs, Directory: r.Directory, Ownership: r,
		Presence:    jsapi.NewBucket(r.Conns.Cloud, presence.BucketName),
		Checkpoints: jsapi.NewBucket(r.Conns.Cloud, ingest.CheckpointBucket),
		Conn:        r.Conns.Shard(hub),
		Acks:        r.Conns.Shard(hub),
		LeaseHeld:   func() bool { return true },
		Serving:     func() bool { return true },
		Retention:   r.retention,
		Now:         time.Now,
		Logger:      slog.New(slog.DiscardHandler),
		Metrics:     r.metrics,
	}
	check := func(hub domain.HubID, _ time.Duration) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.checks = append(r.checks, hub)
	}
	for _, c := range changes {
		c(&cfg)
	}
	ctx, cancel := context.WithCancelCause(r.t.Context())
	s := &running{
		Shard:  ingest.NewShard(cfg),
		r:      r,
		t:      r.t,
		cancel: cancel,
		ready:  make(chan struct{}),
		ended:  make(chan error, 1),
	}
	go func() { s.ended <- s.Run(ctx, check, func() { close(s.ready) }) }()
	r.t.Cleanup(s.stop)
	return s
}

// Observe passes an observation to the shard, and notes whether the hub is connected.
func (s *running) Observe(hub domain.HubID, o presence.Observation) {
	s.r.mu.Lock()
	s.r.connected[hub] = !o.Ended
	s.r.mu.Unlock()
	s.Shard.Observe(hub, o)
}

// stop ends the shard in order.
func (s *running) stop() { s.end(errors.New("stop")) }

// kill ends the shard as the loss of its lease does: the shard drops its messages and writes no
// checkpoint.
func (s *running) kill() { s.end(lease.ErrLost) }

func (s *running) end(cause error) {
	s.t.Helper()
	s.once.Do(func() {
		s.cancel(cause)
		select {
		case err := <-s.ended:
			if err != nil {
				s.t.Errorf("Run = %v, want nil", err)
			}
		case <-time.After(time.Minute):
			s.t.Error("Run has not returned after a minute")
		}
	})
}

// count returns the sum of the series of a metric with the given labels.
func (r *testIngest) count(name string, labels ...string) float64 {
	r.t.Helper()
	return streamstest.MetricValue(r.t, r.registry, "hubcloud_hubbridge_"+name, labels...)
}

// ack is an ack that a hub receives.
type ack struct {
	Log     string
	Through uint64
}

// hub is a hub that sends exactly the messages of a test.
type hub struct {
	r    *testIngest
	id   domain.HubID
	nc   *nats.Conn
	acks chan *nats.Msg
}

// hub returns a new hub of the inventory.
func (r *testIngest) hub() *hub {
	r.t.Helper()
	r.made++
	id, ok := domain.ParseHubID(fmt.Sprintf("hub-%04d-aaaa-bbbb", r.made))
	if !ok {
		r.t.Fatalf("hub-%04d-aaaa-bbbb is not a hub id", r.made)
	}
	r.RegisterHub(r.t, id)
	h := &hub{r: r, id: id, nc: r.hubs.Shard(id), acks: make(chan *nats.Msg, 10_000)}
	sub, err := h.nc.ChanSubscribe(streams.AckSubject(id), h.acks)
	streamstest.Must(r.t, err)
	r.t.Cleanup(func() { streams.Unsubscribe(sub) })
	streamstest.Must(r.t, h.nc.Flush())
	return h
}

// adopt adds the hub to the organization.
func (h *hub) adopt() {
	h.r.t.Helper()
	h.r.AddHub(h.r.t, h.id)
}

// send publishes a message of the hub.
func (h *hub) send(topic string, payload string) {
	h.r.t.Helper()
	streamstest.Must(h.r.t, h.nc.Publish("hub."+string(h.id)+"."+topic, []byte(payload)))
}

// hello sends a hello that causes one ack. While the hub's connection is not observed, hello sends
// two hellos, because only the second one is acknowledged.
func (h *hub) hello(log string, oldest, newest uint64) {
	h.r.t.Helper()
	h.r.mu.Lock()
	connected := h.r.connected[h.id]
	h.r.mu.Unlock()
	if !connected {
		h.helloOnce(log, oldest, newest)
	}
	h.helloOnce(log, oldest, newest)
}

// helloAcked sends a hello, and wants the ack that it causes.
func (h *hub) helloAcked(log string, oldest, newest, through uint64) {
	h.r.t.Helper()
	h.hello(log, oldest, newest)
	h.wantAck(log, through)
}

// eventsAcked sends events, and wants all of them acknowledged.
func (h *hub) eventsAcked(log string, from, to uint64) {
	h.r.t.Helper()
	h.events(log, from, to)
	h.wantAck(log, to)
}

// helloOnce sends one hello.
func (h *hub) helloOnce(log string, oldest, newest uint64) {
	h.r.t.Helper()
	h.send(
		"hello",
		fmt.Sprintf(
			`{"protocol":1,"log":%q,"oldest":%d,"newest":%d,"clock_trusted":true,"firmware":{"version":"1.0"},"network":{"type":"wifi","interface":"w0","metered":false}}`,
			log, oldest, newest,
		),
	)
}

// event returns the event number seq.
func event(seq uint64) string {
	return fmt.Sprintf(
		`{"seq":%d,"type":"channel.observed","device_id":1,"time":"2026-01-02T03:04:05Z","clock_trusted":true,"data":{"value":%d}}`,
		seq, seq,
	)
}

// events sends the events from from to to in one message.
func (h *hub) events(log string, from, to uint64) {
	h.r.t.Helper()
	var all []string
	for seq := from; seq <= to; seq++ {
		all = append(all, event(seq))
	}
	h.sendEvents(log, all...)
}

// sendEvents sends the given events in one message.
func (h *hub) sendEvents(log string, events ...string) {
	h.r.t.Helper()
	h.send("events", fmt.Sprintf(`{"log":%q,"events":[%s]}`, log, strings.Join(events, ",")))
}

// ack returns the next ack.
func (h *hub) ack() ack {
	h.r.t.Helper()
	a, ok := h.ackWithin(5 * time.Minute)
	if !ok {
		h.r.t.Fatal("no ack")
	}
	return a
}

// ackWithin returns the next ack; false when none has come within d.
func (h *hub) ackWithin(d time.Duration) (a ack, ok bool) {
	select {
	case msg := <-h.acks:
		if err := json.Unmarshal(msg.Data, &a); err != nil {
			h.r.t.Fatalf("ack %q: %v", msg.Data, err)
		}
		return a, true
	case <-time.After(d):
		return ack{}, false
	}
}

func (h *hub) wantAck(log string, through uint64) {
	h.r.t.Helper()
	if got := h.ack(); got != (ack{log, through}) {
		h.r.t.Fatalf("ack: got %+v, want log %s through %d", got, log, through)
	}
}

// eventLog returns the hub's event log, as EventLog writes it.
func (h *hub) eventLog() string {
	h.r.t.Helper()
	return h.r.EventLog(h.r.t, h.id)
}

// wantEventLog compares the hub's event log with want.
func (h *hub) wantEventLog(want string) {
	h.r.t.Helper()
	if got := h.eventLog(); got != want {
		h.r.t.Errorf("event log of %s: got\n%s\nwant\n%s", h.id, got, want)
	}
}

// wantJournal compares the hub's events, also those that have expired, with want.
func (h *hub) wantJournal(want string) {
	h.r.t.Helper()
	if got := h.r.JournaledLog(h.r.t, h.id); got != want {
		h.r.t.Errorf("journal of %s: got\n%s\nwant\n%s", h.id, got, want)
	}
}

// presence returns the hub's record in the presence bucket.
func (h *hub) presence() (p domain.Presence) {
	h.r.t.Helper()
	h.record(presence.BucketName, &p)
	return p
}

// record reads the hub's record in a bucket, and returns its revision.
func (h *hub) record(name string, into any) (revision uint64) {
	h.r.t.Helper()
	bucket := jsapi.NewBucket(h.r.Conns.Cloud, name)
	entry, err := bucket.GetJSON(h.r.t.Context(), string(h.id), into)
	streamstest.Must(h.r.t, err)
	return entry.Revision
}

// emptied waits until every record of the hub's stream has expired.
func (h *hub) emptied() {
	h.r.t.Helper()
	js, err := jetstream.New(h.r.Conns.Shard(h.id))
	streamstest.Must(h.r.t, err)
	if tip, ok := h.r.Journals.Tip(h.id); ok {
		viewstest.Await(h.r.t, h.r.Conns, h.id, tip.Seq)
	}
	streamstest.Eventually(h.r.t, "an empty stream", func() bool {
		stream, err := js.Stream(h.r.t.Context(), streams.HubStream(h.id))
		return err == nil && stream.CachedInfo().State.Msgs == 0
	})
}
