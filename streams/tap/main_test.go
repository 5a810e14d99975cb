package tap_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/feed"
	"hubcloud/streams/journal"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/tap"
	"hubcloud/streams/views/viewstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }

const (
	testTimeout = time.Minute
	org         = "01930000-0000-7000-8000-00000000000a"
)

func hubID(n int) domain.HubID { return domain.HubID(fmt.Sprintf("hub-aaaa-aaaa-%04d", n)) }

// testHubs is a broker with hub logs that a test appends events to.
type testHubs struct {
	t      testing.TB
	broker *streamstest.Broker
	conns  *streams.Conns
	logs   *feed.Logs
	// journals is where logs are stored.
	journals *journal.Journal
	// closeLogs ends logs and journals.
	closeLogs func()

	mu     sync.Mutex
	epochs map[domain.HubID]domain.EpochID
	last   map[domain.HubID]uint64
	n      map[domain.HubID]int
}

func newTestHubs(t testing.TB, retention time.Duration) *testHubs {
	t.Helper()
	r := &testHubs{
		t: t, broker: streamstest.New(t), epochs: map[domain.HubID]domain.EpochID{},
		last: map[domain.HubID]uint64{}, n: map[domain.HubID]int{},
	}
	r.conns = r.broker.Connect(t)
	r.openLogs(retention)
	return r
}

// openLogs opens the journal and the logs.
func (r *testHubs) openLogs(retention time.Duration) {
	r.t.Helper()
	journals, stop := viewstest.Open(r.t, r.conns, retention)
	r.journals = journals
	var err error
	r.logs, err = feed.New(r.conns, feed.Config{
		Journal: r.journals, Retention: retention, Epoch: r.epoch, Logger: streamstest.Logger(),
	})
	streamstest.Must(r.t, err)
	r.closeLogs = sync.OnceFunc(func() {
		r.logs.Close()
		stop()
	})
	r.t.Cleanup(r.closeLogs)
}

func (r *testHubs) epochID(id domain.HubID) domain.EpochID {
	if epoch, ok := r.epochs[id]; ok {
		return epoch
	}
	return domain.NewEpochID(0xa)
}

func (r *testHubs) epoch(id domain.HubID) (domain.Epoch, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return domain.Epoch{ID: r.epochID(id)}, true
}

// store appends count events to a hub's log, as one batch. The events of a hub are numbered from 1.
func (r *testHubs) store(id domain.HubID, count int) {
	r.t.Helper()
	r.mu.Lock()
	last, n, epoch := r.last[id], r.n[id], r.epochID(id)
	r.mu.Unlock()
	records := make([]journal.Record, count)
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
		records[i] = journal.Record{Kind: journal.KindHubEvent,
			Payload: payload, EpochID: epoch, OrgID: org,
			OwnLog: "log", Through: uint64(n + i + 1),
		}
	}
	last, err := r.logs.Append(context.Background(), id, last, records)
	if err != nil {
		r.t.Errorf("append to %s: %v", id, err)
		return
	}
	viewstest.Await(r.t, r.conns, id, last)
	r.mu.Lock()
	r.last[id], r.n[id] = last, n+count
	r.mu.Unlock()
}

// connect logs in to the account TAP.
func (r *testHubs) connect() *nats.Conn {
	r.t.Helper()
	c := tap.ForUser(
		"nats://in-process", streamstest.Shards, r.broker.Credentials().Users[streams.AccountTap],
	)
	nc, err := tap.Connect(
		r.t.Context(), c, streamstest.Logger(), nats.InProcessServer(r.broker),
	)
	streamstest.Must(r.t, err)
	r.t.Cleanup(nc.Close)
	return nc
}

// runningTap is a tap in a goroutine of its own.
type runningTap struct {
	t    testing.TB
	stop context.CancelFunc
	done chan error
}

// start starts a tap that ends with the test at the latest.
func (r *testHubs) start(cfg tap.Config) *runningTap {
	r.t.Helper()
	cfg.Conn, cfg.Shards = r.connect(), streamstest.Shards
	cfg.Logger = cmp.Or(cfg.Logger, streamstest.Logger())
	created, err := tap.New(cfg)
	streamstest.Must(r.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	u := &runningTap{t: r.t, stop: cancel, done: make(chan error, 1)}
	go func() { u.done <- created.Run(ctx) }()
	r.t.Cleanup(func() {
		cancel()
		<-u.done
	})
	return u
}

// run runs a tap that does not follow, and returns its records.
func (r *testHubs) run(cfg tap.Config) []tap.Record {
	r.t.Helper()
	out := newSink()
	cfg.Output = out
	streamstest.Must(r.t, r.start(cfg).wait())
	return out.all()
}

// end stops the tap and returns the error of its Run.
func (u *runningTap) end() error {
	u.stop()
	return u.wait()
}

// wait waits until Run returns, and returns its error.
func (u *runningTap) wait() error {
	select {
	case err := <-u.done:
		u.done <- err
		return err
	case <-time.After(testTimeout):
		u.t.Fatalf("Run: still running after %v", testTimeout)
		return nil
	}
}

// sink is an Output that keeps all records.
type sink struct {
	mu      sync.Mutex
	records []tap.Record
	changed chan struct{}
	// fail, unless nil, returns the error of each write.
	fail func() error
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

func (s *sink) Flush(context.Context) error { return nil }

func (s *sink) all() []tap.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]tap.Record(nil), s.records...)
}

// await waits until the sink has n records, and returns all.
func (s *sink) await(t testing.TB, n int) []tap.Record {
	t.Helper()
	deadline := time.After(testTimeout)
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
			t.Fatalf("records: got %d, want %d", have, n)
		}
	}
}

// number returns the number of a hub's event, and 0 for a record of the tap itself.
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
		t.Fatalf("record of %s, type %s: got envelope %s", r.Hub, r.Type, r.Envelope)
	}
	return envelope.Data.N
}

// numbers returns the numbers of each hub's events, in the order of the records.
func numbers(t testing.TB, records []tap.Record) map[domain.HubID][]int {
	t.Helper()
	all := map[domain.HubID][]int{}
	for _, r := range records {
		all[r.Hub] = append(all[r.Hub], number(t, r))
	}
	return all
}

// consecutive checks that a hub's numbers are 1, 2, 3, … n.
func consecutive(t testing.TB, id domain.HubID, got []int, n int) {
	t.Helper()
	if !slices.Equal(got, upTo(1, n)) {
		t.Errorf("events of %s: got %v, want 1 to %d", id, got, n)
	}
}

// upTo returns from, from+1, … up to to.
func upTo(from, to int) (all []int) {
	for n := from; n <= to; n++ {
		all = append(all, n)
	}
	return all
}
