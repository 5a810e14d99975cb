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
	"hubcloud/hubbridge/bucket"
	"hubcloud/hubbridge/ingest"
	"hubcloud/hubbridge/lease"
	"hubcloud/hubbridge/presence"
	"hubcloud/streams"
	"hubcloud/streams/directory"
	"hubcloud/streams/directory/directorytest"
	"hubcloud/streams/hublog"
	"hubcloud/streams/streamstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }

// rig is an installation without a broker for MQTT: hubs are NATS clients of their shard's account,
// which is exactly what MQTT makes of them.
type rig struct {
	t         testing.TB
	broker    *streamstest.Broker
	conns     *streams.Conns // the service's
	hubs      *streams.Conns // the hubs'
	dir       *directory.Service
	logs      *hublog.Logs
	retention time.Duration
	registry  *prometheus.Registry
	metrics   *ingest.Metrics

	org, site string
	made      int

	mu     sync.Mutex
	checks []domain.HubID
	// connected has the hubs of which the broker's last word was that they are connected.
	connected map[domain.HubID]bool
}

func newRig(t testing.TB, retention time.Duration) *rig {
	t.Helper()
	broker := streamstest.New(t)
	r := &rig{
		t:         t,
		broker:    broker,
		conns:     broker.Connect(t),
		hubs:      broker.Connect(t),
		retention: retention,
		registry:  prometheus.NewRegistry(),
		connected: make(map[domain.HubID]bool),
	}
	ctx := t.Context()
	if _, err := streams.OpenBuckets(ctx, r.conns, 1); err != nil {
		t.Fatal(err)
	}
	log, err := directory.Open(ctx, r.conns, 1)
	if err != nil {
		t.Fatal(err)
	}
	r.logs, err = hublog.New(r.conns, hublog.Config{
		Retention: retention, Logger: slog.New(slog.DiscardHandler),
		Epoch: func(hub domain.HubID) (domain.Epoch, bool) {
			access, ok := r.Hub(hub)
			return access.Epoch, ok
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.dir = directory.NewService(log, directory.ServiceConfig{
		Environment: "dev", Presence: directorytest.Presence{},
		Connections: &directorytest.Connections{}, Logs: r.logs,
	})
	t.Cleanup(r.logs.Close)
	r.metrics = ingest.NewMetrics(r.registry)
	if r.org, _, err = r.dir.CreateOrg(ctx, operator, "Org", "a@example.com"); err != nil {
		t.Fatal(err)
	}
	site, err := r.dir.CreateSite(ctx, operator, r.org, "Site")
	if err != nil {
		t.Fatal(err)
	}
	r.site = site.ID
	return r
}

// Hub makes the rig an ingest.Ownership that is never behind.
func (r *rig) Hub(hub domain.HubID) (domain.HubAccess, bool) {
	state, _, err := r.dir.Hub(context.Background(), hub)
	if err != nil || state.OrgID == "" {
		return domain.HubAccess{}, false
	}
	return domain.HubAccess{OrgID: state.OrgID, Epoch: state.Epoch}, true
}

// change alters what a shard works with.
type change func(*ingest.Config)

// running is a shard that runs.
type running struct {
	*ingest.Shard
	r      *rig
	t      testing.TB
	cancel context.CancelCauseFunc
	ended  chan error
	once   sync.Once
}

// shard runs the shard of a hub until the test or the caller ends it.
func (r *rig) shard(hub domain.HubID, changes ...change) *running {
	r.t.Helper()
	cfg := ingest.Config{
		Logs: r.logs, Directory: r.dir, Ownership: r,
		Presence: bucket.New(
			r.conns.Cloud, presence.BucketName,
		), Ledger: bucket.New(r.conns.Cloud, ingest.LedgerName),
		Conn: r.conns.Shard(
			hub,
		), Acks: r.conns.Shard(hub), Held: func() bool { return true }, Retention: r.retention,
		Now: time.Now, Log: slog.New(slog.DiscardHandler), Metrics: r.metrics,
		Check: func(hub domain.HubID, _ time.Duration) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.checks = append(r.checks, hub)
		},
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
		ended:  make(chan error, 1),
	}
	ready := make(chan struct{})
	go func() { s.ended <- s.Run(ctx, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-s.ended:
		r.t.Fatalf("the shard does not begin: %v", err)
	}
	r.t.Cleanup(s.stop)
	return s
}

// Observe tells the shard what the broker says of a hub's connection.
func (s *running) Observe(hub domain.HubID, o presence.Observation) {
	s.r.mu.Lock()
	s.r.connected[hub] = !o.Ended
	s.r.mu.Unlock()
	s.Shard.Observe(hub, o)
}

// stop ends the shard in order, kill as when its lease is lost: nothing is finished, no ledger
// written.
func (s *running) stop() { s.end(errors.New("stop")) }
func (s *running) kill() { s.end(lease.ErrLost) }

func (s *running) end(cause error) {
	s.t.Helper()
	s.once.Do(func() {
		s.cancel(cause)
		select {
		case err := <-s.ended:
			if err != nil {
				s.t.Errorf("the shard ended with %v", err)
			}
		case <-time.After(time.Minute):
			s.t.Error("the shard does not end")
		}
	})
}

// count gives the value of a counter, or of one of its labels.
func (r *rig) count(name string, labels ...string) float64 {
	r.t.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "hubcloud_hubbridge_"+name {
			continue
		}
		for _, metric := range family.GetMetric() {
			if len(labels) == 0 || metric.GetLabel()[0].GetValue() == labels[0] {
				return metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			}
		}
	}
	r.t.Fatalf("no metric %s %v", name, labels)
	return 0
}

// ack is what a hub hears.
type ack struct {
	Log     string
	Through uint64
}

// hub is a hub that says exactly what a test has it say.
type hub struct {
	r    *rig
	id   domain.HubID
	nc   *nats.Conn
	acks chan *nats.Msg
}

// hub makes a hub that is in the inventory.
func (r *rig) hub() *hub {
	r.t.Helper()
	r.made++
	id, ok := domain.ParseHubID(fmt.Sprintf("hub-%04d-aaaa-bbbb", r.made))
	if !ok {
		r.t.Fatal("no hub id")
	}
	if err := r.dir.RegisterHub(r.t.Context(), operator, id, make([]byte, 32)); err != nil {
		r.t.Fatal(err)
	}
	h := &hub{r: r, id: id, nc: r.hubs.Shard(id), acks: make(chan *nats.Msg, 10_000)}
	sub, err := h.nc.ChanSubscribe(streams.AckSubject(id), h.acks)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = sub.Unsubscribe() })
	if err := h.nc.Flush(); err != nil {
		r.t.Fatal(err)
	}
	return h
}

// adopt adds the hub to the rig's organization.
func (h *hub) adopt() {
	h.r.t.Helper()
	if _, err := h.r.dir.AddHub(h.r.t.Context(), operator, domain.AddHub{
		OrgID: h.r.org, HubID: h.id, SiteID: h.r.site,
	}); err != nil {
		h.r.t.Fatal(err)
	}
}

func (h *hub) send(topic string, payload string) {
	h.r.t.Helper()
	if err := h.nc.Publish("hub."+string(h.id)+"."+topic, []byte(payload)); err != nil {
		h.r.t.Fatal(err)
	}
}

// hello says hello so that there is one ack. In most tests nobody says that the hub is connected:
// then the ack comes for the second one.
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

func event(seq uint64) string {
	return fmt.Sprintf(
		`{"seq":%d,"type":"channel.observed","device_id":1,"time":"2026-01-02T03:04:05Z","clock_trusted":true,"data":{"value":%d}}`,
		seq, seq,
	)
}

func (h *hub) events(log string, from, to uint64) {
	h.r.t.Helper()
	var all []string
	for seq := from; seq <= to; seq++ {
		all = append(all, event(seq))
	}
	h.these(log, all...)
}

func (h *hub) these(log string, events ...string) {
	h.r.t.Helper()
	h.send("events", fmt.Sprintf(`{"log":%q,"events":[%s]}`, log, strings.Join(events, ",")))
}

// ack gives the next ack.
func (h *hub) ack() ack {
	h.r.t.Helper()
	a, ok := h.ackWithin(time.Minute)
	if !ok {
		h.r.t.Fatal("no ack")
	}
	return a
}

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
		h.r.t.Fatalf("ack %+v, wanted %s %d", got, log, through)
	}
}

// told gives what the hub's event log holds, in words: the value of an observation, from-to of a
// skip, otherwise the type.
func (h *hub) told() string {
	h.r.t.Helper()
	page, err := h.r.logs.Page(h.r.t.Context(), h.id, "", 500)
	if err != nil {
		h.r.t.Fatal(err)
	}
	var words []string
	for {
		for _, e := range page.Events {
			words = append(words, word(h.r.t, e.Envelope))
		}
		if !page.HasMore {
			return strings.Join(words, " ")
		}
		if page, err = h.r.logs.Page(h.r.t.Context(), h.id, page.Next, 500); err != nil {
			h.r.t.Fatal(err)
		}
	}
}

func word(t testing.TB, envelope []byte) string {
	var e struct {
		Type         string
		HubID        domain.HubID `json:"hub_id"`
		Time         string
		ClockTrusted *bool `json:"clock_trusted"`
		Data         struct {
			Value, From, To uint64
			Reason          *string
		}
	}
	if err := json.Unmarshal(envelope, &e); err != nil {
		t.Fatalf("%s: %v", envelope, err)
	}
	if _, err := time.Parse(domain.TimeLayout, e.Time); err != nil || e.ClockTrusted == nil {
		t.Errorf("%s: time %v", envelope, err)
	}
	switch e.Type {
	case "channel.observed":
		return fmt.Sprint(e.Data.Value)
	case domain.EventHubEventsSkipped:
		return fmt.Sprintf("skip:%d-%d", e.Data.From, e.Data.To)
	case domain.EventHubConnected:
		return "connected"
	case domain.EventHubDisconnected:
		if e.Data.Reason == nil {
			return "disconnected:null"
		}
		return "disconnected:" + strings.ReplaceAll(*e.Data.Reason, " ", "_")
	}
	return e.Type
}

func (h *hub) wantTold(want string) {
	h.r.t.Helper()
	if got := h.told(); got != want {
		h.r.t.Errorf("the log holds\n%s\nwanted\n%s", got, want)
	}
}

// presence gives the hub's record in the presence bucket.
func (h *hub) presence() (p domain.Presence) {
	h.r.t.Helper()
	h.record(presence.BucketName, &p)
	return p
}

// record reads the hub's record in a bucket, and gives its revision.
func (h *hub) record(name string, into any) (revision uint64) {
	h.r.t.Helper()
	revision, err := bucket.New(h.r.conns.Cloud, name).Get(h.r.t.Context(), string(h.id), into)
	if err != nil {
		h.r.t.Fatal(err)
	}
	return revision
}

// emptied waits until retention has taken everything out of the hub's stream.
func (h *hub) emptied() {
	h.r.t.Helper()
	js, err := jetstream.New(h.r.conns.Shard(h.id))
	if err != nil {
		h.r.t.Fatal(err)
	}
	eventually(h.r.t, "an empty stream", func() bool {
		stream, err := js.Stream(h.r.t.Context(), streams.HubStream(h.id))
		return err == nil && stream.CachedInfo().State.Msgs == 0
	})
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("not within 15 s: %s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// operator is who adds what tests need.
var operator = domain.Origin{Actor: domain.Actor{Kind: domain.ActorOperator}}
