package tap_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/hublog"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/tap"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }

const (
	patient = time.Minute
	org     = "01930000-0000-7000-8000-00000000000a"
)

func hubID(n int) domain.HubID { return domain.HubID(fmt.Sprintf("hub-aaaa-aaaa-%04d", n)) }

// rig is a broker with hub logs that a test fills.
type rig struct {
	t      testing.TB
	broker *streamstest.Broker
	conns  *streams.Conns
	logs   *hublog.Logs

	mu     sync.Mutex
	epochs map[domain.HubID]domain.EpochID
	last   map[domain.HubID]uint64
	n      map[domain.HubID]int
}

func newRig(t testing.TB, retention time.Duration) *rig {
	t.Helper()
	r := &rig{
		t: t, broker: streamstest.New(t), epochs: map[domain.HubID]domain.EpochID{},
		last: map[domain.HubID]uint64{}, n: map[domain.HubID]int{},
	}
	r.conns = r.broker.Connect(t)
	var err error
	r.logs, err = hublog.New(
		r.conns,
		hublog.Config{
			Retention: retention,
			Logger:    slog.New(slog.DiscardHandler),
			Epoch:     r.epoch,
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.logs.Close)
	return r
}

func (r *rig) epochID(id domain.HubID) domain.EpochID {
	if epoch, ok := r.epochs[id]; ok {
		return epoch
	}
	return domain.NewEpochID(0xa)
}

func (r *rig) epoch(id domain.HubID) (domain.Epoch, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return domain.Epoch{ID: r.epochID(id)}, true
}

// store appends count events, numbered on from those before, as one batch.
func (r *rig) store(id domain.HubID, count int) {
	r.t.Helper()
	r.mu.Lock()
	last, n, epoch := r.last[id], r.n[id], r.epochID(id)
	r.mu.Unlock()
	records := make([]hublog.Record, count)
	for i := range records {
		e := domain.HubEvent{
			Type: "channel.observed", HubID: id, Time: domain.FormatTime(time.Unix(int64(n+i), 0)),
			Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n+i+1)),
		}
		if (n+i)%10 == 9 {
			e.Type = "device.updated"
		}
		payload, err := json.Marshal(e)
		if err != nil {
			r.t.Error(err)
			return
		}
		records[i] = hublog.Record{
			Payload: payload,
			EpochID: epoch,
			OrgID:   org,
			OwnLog:  "log",
			Through: uint64(n + i + 1),
		}
	}
	last, err := r.logs.Append(context.Background(), id, last, records)
	if err != nil {
		r.t.Errorf("append to %s: %v", id, err)
		return
	}
	r.mu.Lock()
	r.last[id], r.n[id] = last, n+count
	r.mu.Unlock()
}

// connect logs in to the account TAP.
func (r *rig) connect() *nats.Conn {
	r.t.Helper()
	c := tap.ForUser(
		"nats://in-process", streamstest.Shards, r.broker.Credentials().Users[streams.AccountTap],
	)
	nc, err := tap.Connect(
		r.t.Context(), c, slog.New(slog.DiscardHandler), nats.InProcessServer(r.broker),
	)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(nc.Close)
	return nc
}

// run is a tap under way.
type run struct {
	t    testing.TB
	stop context.CancelFunc
	done chan error
}

// start starts a tap, which ends with the test.
func (r *rig) start(cfg tap.Config) *run {
	r.t.Helper()
	cfg.Conn, cfg.Shards = r.connect(), streamstest.Shards
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	made, err := tap.New(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	u := &run{t: r.t, stop: cancel, done: make(chan error, 1)}
	go func() { u.done <- made.Run(ctx) }()
	r.t.Cleanup(func() {
		cancel()
		<-u.done
	})
	return u
}

// end ends the tap and gives what it returned.
func (u *run) end() error {
	u.stop()
	return u.wait()
}

func (u *run) wait() error {
	select {
	case err := <-u.done:
		u.done <- err
		return err
	case <-time.After(patient):
		u.t.Fatal("the tap does not end")
		return nil
	}
}

// sink is an Output that remembers.
type sink struct {
	mu      sync.Mutex
	records []tap.Record
	changed chan struct{}
	// fail, when set, is asked about each write.
	fail func() error
	// flushed is how many records there were at the last flush.
	flushed int
}

func newSink() *sink { return &sink{changed: make(chan struct{})} }

func (s *sink) Writers() int { return 8 }

func (s *sink) Write(_ context.Context, records []tap.Record) error {
	if s.fail != nil {
		if err := s.fail(); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = append(s.records, records...)
	close(s.changed)
	s.changed = make(chan struct{})
	return nil
}

func (s *sink) Flush(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushed = len(s.records)
	return nil
}

func (s *sink) all() []tap.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]tap.Record(nil), s.records...)
}

// await waits until there are n records.
func (s *sink) await(t testing.TB, n int) []tap.Record {
	t.Helper()
	deadline := time.After(patient)
	for {
		s.mu.Lock()
		changed, have := s.changed, len(s.records)
		s.mu.Unlock()
		if have >= n {
			return s.all()
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("%d records, want %d", have, n)
		}
	}
}

// number gives the number that an event carries; 0 for what is none of a hub's.
func number(t testing.TB, r tap.Record) int {
	t.Helper()
	var envelope struct {
		Hub  domain.HubID `json:"hub_id"`
		Type string       `json:"type"`
		Data struct{ N int }
	}
	if err := json.Unmarshal(r.Envelope, &envelope); err != nil {
		t.Fatalf("envelope %q: %v", r.Envelope, err)
	}
	if envelope.Hub != r.Hub || envelope.Type != r.Type {
		t.Fatalf("record of %s, %s has the envelope %s", r.Hub, r.Type, r.Envelope)
	}
	return envelope.Data.N
}

// numbers gives the numbers of each hub's events, in the order in which they came.
func numbers(t testing.TB, records []tap.Record) map[domain.HubID][]int {
	t.Helper()
	all := map[domain.HubID][]int{}
	for _, r := range records {
		all[r.Hub] = append(all[r.Hub], number(t, r))
	}
	return all
}

// consecutive checks that a hub's numbers are 1, 2, 3, … up to n.
func consecutive(t testing.TB, id domain.HubID, got []int, n int) {
	t.Helper()
	if len(got) != n {
		t.Errorf("%s: %d events, want %d", id, len(got), n)
	}
	for i, number := range got {
		if number != i+1 {
			t.Errorf("%s: event %d has the number %d", id, i+1, number)
			return
		}
	}
}

// stream gives what the broker says of a hub's stream.
func (r *rig) stream(id domain.HubID) (*jetstream.StreamInfo, error) {
	js, err := jetstream.New(r.conns.Shard(id))
	if err != nil {
		return nil, err
	}
	stream, err := js.Stream(r.t.Context(), streams.HubStream(id))
	if err != nil {
		return nil, err
	}
	return stream.CachedInfo(), nil
}
