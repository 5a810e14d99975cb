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
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Declare(t.Context()); err != nil {
		t.Fatal(err)
	}
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
	w, err := j.OpenWriter(t.Context(), 0)
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
	if err := s.Apply(c); err != nil {
		s.t.Fatal(err)
	}
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
