package journal

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }

const (
	hubA = domain.HubID("hub-aaaa-aaaa-aaaa")
	hubB = domain.HubID("hub-bbbb-bbbb-bbbb")
)

// open returns the declared journals of a broker.
func open(t testing.TB, conns *streams.Conns, cfg Config) *Journal {
	t.Helper()
	cfg.Conn, cfg.Logger = conns.Cloud, streamstest.Logger()
	if cfg.Retention == 0 {
		cfg.Retention = time.Hour
	}
	j, err := New(cfg)
	streamstest.Must(t, err)
	streamstest.Must(t, j.Declare(t.Context()))
	return j
}

// source is a writer with an index that has all that it stored.
type source struct {
	t testing.TB
	*Writer
	*Index
	// n counts the records.
	n int
}

// begin opens a writer after the commits that the index has not applied yet.
func begin(t testing.TB, j *Journal, x *Index) *source {
	t.Helper()
	w, err := j.OpenWriter(t.Context(), 0, always)
	if err != nil {
		t.Fatalf("OpenWriter: %v", err)
	}
	s := &source{t: t, Writer: w, Index: x}
	if x.Position()+1 == w.End() {
		s.apply(Commit{Seq: w.End()})
	}
	return s
}

func (s *source) apply(c Commit) {
	s.t.Helper()
	streamstest.Must(s.t, s.Apply(c))
}

// records returns the next record of each hub, one after the other.
func (s *source) records(hubs ...domain.HubID) []Record {
	next := map[domain.HubID]uint64{}
	at := s.LastTime()
	if at.IsZero() {
		at = began
	}
	var records []Record
	for _, hub := range hubs {
		if next[hub] == 0 {
			tip, _ := s.Tip(hub)
			next[hub] = tip.Seq
		}
		next[hub]++
		s.n++
		at = at.Add(time.Millisecond)
		r := event(hub, next[hub], s.n)
		r.Time = at
		records = append(records, r)
	}
	return records
}

// store stores a commit with one more record of each hub.
func (s *source) store(hubs ...domain.HubID) Commit {
	s.t.Helper()
	c, err := s.Commit(s.t.Context(), s.records(hubs...), s.Tip)
	if err != nil {
		s.t.Fatalf("Commit: %v", err)
	}
	s.apply(c)
	return c
}

// followed is a running follower with all that it delivered.
type followed struct {
	*Follower
	mu      sync.Mutex
	commits []Commit
	gaps    [][2]uint64
	// faults has what must not be.
	faults []string
	next   uint64
}

// follow runs a follower until the test ends.
func follow(t testing.TB, j *Journal, from uint64) (f *followed, stop func()) {
	t.Helper()
	f = &followed{next: from}
	f.Follower = j.NewFollower(0, from, f.add, f.gap)
	return f, streamstest.Run(t, "follower", f.Run)
}

func (f *followed) add(commits []Commit) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range commits {
		if c.Seq != f.next {
			f.faults = append(f.faults, fmt.Sprintf("commit %d instead of %d", c.Seq, f.next))
		}
		f.next = c.Seq + 1
	}
	f.commits = append(f.commits, commits...)
}

func (f *followed) gap(from, to uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if from != f.next || to < from {
		f.faults = append(f.faults, fmt.Sprintf("%d to %d missing before %d", from, to, f.next))
	}
	f.next = to + 1
	f.gaps = append(f.gaps, [2]uint64{from, to})
}

// sync returns everything that was delivered, once it is everything that is stored.
func (f *followed) sync(t testing.TB) []Commit {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := f.Sync(ctx); err != nil {
		t.Fatalf("Sync: %v", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fault := range f.faults {
		t.Error("delivered: ", fault)
	}
	return f.commits
}

// numbers returns the numbers in the payloads of a commit's records.
func numbers(t testing.TB, records []Record) (all []int) {
	t.Helper()
	for _, r := range records {
		var n int
		if _, err := fmt.Sscanf(string(r.Payload), `{"type":"x","n":%d}`, &n); err != nil {
			t.Fatalf("payload %q: %v", r.Payload, err)
		}
		all = append(all, n)
	}
	return all
}

func hubID(n int) domain.HubID { return domain.HubID(fmt.Sprintf("hub-aaaa-bbbb-%04d", n)) }

// events returns count events of a hub.
func events(count int) []Record {
	records := make([]Record, count)
	for i := range records {
		records[i] = Record{
			Kind: KindHubEvent, EpochID: domain.NewEpochID(1),
			Payload: []byte(`{"type":"channel.observed"}`),
		}
	}
	return records
}

// replica is a Journal with its subscriber.
type replica struct {
	*Journal
	stop func()

	mu sync.Mutex
	// got has the records of each hub, in the order in which they were passed on.
	got map[domain.HubID][]Record
	// last is the time of the last record, of any hub.
	last time.Time
	// commits counts what was passed on.
	commits int
	// disorder is the first violation of the promised order.
	disorder error
}

// start returns a replica that follows the journal until the test ends.
func start(t testing.TB, broker *streamstest.Broker, now func() time.Time) *replica {
	t.Helper()
	return startOn(t, broker.Connect(t), 1, now)
}

// startOn is start with connections. The journal has that many copies.
func startOn(t testing.TB, conns *streams.Conns, copies int, now func() time.Time) *replica {
	t.Helper()
	r := &replica{got: map[domain.HubID][]Record{}}
	var err error
	r.Journal, err = New(Config{
		Conn: conns.Cloud, Shards: len(conns.Shards), Replicas: copies, Retention: time.Hour, Now: now,
		Logger: streamstest.Logger(),
	})
	if err == nil {
		err = r.Open(t.Context())
	}
	streamstest.Must(t, err)
	r.Subscribe(r.receive)
	r.stop = streamstest.Run(t, "journal", r.Run)
	return r
}

func (r *replica) receive(_ int, commits []Commit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.commits += len(commits)
	for _, c := range commits {
		for _, rec := range c.Records {
			before := r.got[rec.Hub]
			switch {
			case !rec.Time.After(r.last):
				r.fail("time %v after %v", rec.Time, r.last)
			case len(before) > 0 && before[len(before)-1].Seq+1 != rec.Seq:
				r.fail("sequence %d of %s after %d", rec.Seq, rec.Hub, before[len(before)-1].Seq)
			}
			r.last = rec.Time
			r.got[rec.Hub] = append(before, rec)
		}
	}
}

func (r *replica) fail(format string, args ...any) {
	if r.disorder == nil {
		r.disorder = fmt.Errorf(format, args...)
	}
}

// check fails the test unless the subscriber has got count records of the hub, in order.
func (r *replica) check(t testing.TB, hub domain.HubID, count int) {
	t.Helper()
	if err := r.Sync(t.Context(), hub); err != nil {
		t.Fatalf("Sync: %v", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.disorder != nil {
		t.Errorf("the subscriber got records in disorder: %v", r.disorder)
	}
	if got := len(r.got[hub]); got != count {
		t.Errorf("the subscriber got %d records of %s, want %d", got, hub, count)
	}
}

// serve makes the replica write the journal until the test ends or stop is called. It returns once
// it does.
func (r *replica) serve(t testing.TB, held func() bool) (stop func()) {
	t.Helper()
	return r.serveLease(t, Lease{Held: held})
}

// serveLease is serve with a lease, whose Ready it sets.
func (r *replica) serveLease(t testing.TB, lease Lease) (stop func()) {
	t.Helper()
	ready := make(chan struct{}, 100)
	lease.Ready = func() { ready <- struct{}{} }
	stop = streamstest.Run(t, "writer", func(ctx context.Context) error {
		return r.Write(ctx, 0, lease)
	})
	select {
	case <-ready:
	case <-time.After(time.Minute):
		t.Fatal("the journal is not written after a minute")
	}
	return stop
}

func always() bool { return true }

// appendCommand appends the record of a command.
func (r *replica) appendCommand(ctx context.Context, hub domain.HubID) (uint64, error) {
	return r.Append(ctx, hub, AnyEnd, []Record{{Kind: KindCommand, Payload: []byte(`{}`)}})
}
