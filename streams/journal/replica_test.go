package journal

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

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
	if err != nil {
		t.Fatal(err)
	}
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
	ready := make(chan struct{}, 100)
	stop = streamstest.Run(t, "writer", func(ctx context.Context) error {
		return r.Write(ctx, 0, Lease{Held: held, Ready: func() { ready <- struct{}{} }})
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
