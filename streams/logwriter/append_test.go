package logwriter_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/logwriter"
	"hubcloud/streams/streamstest"
)

// Appends get consecutive sequences, from the writer's process and from another one, and both see
// all of them.
func TestAppend(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	writer := start(t, broker, nil)
	other := start(t, broker, nil)
	writer.serve(t, always)
	hub := hubID(1)
	var last uint64
	for i := range 20 {
		r := writer
		if i%2 == 1 {
			r = other
		}
		var err error
		if last, err = r.Append(t.Context(), hub, last, events(3)); err != nil {
			t.Fatalf("Append %d: %v", i, err)
		}
		if want := uint64(3 * (i + 1)); last != want {
			t.Fatalf("Append %d = %d, want %d", i, last, want)
		}
		writer.check(t, hub, int(last))
		other.check(t, hub, int(last))
	}
	for name, r := range map[string]*replica{"writer": writer, "other": other} {
		_, err := r.Append(t.Context(), hub, last-1, events(1))
		if !errors.Is(err, jsapi.ErrConflict) {
			t.Errorf("%s: Append after an old event: %v, want ErrConflict", name, err)
		}
		if _, err := r.Append(t.Context(), hub, last, make([]journal.Record, 1)); err == nil {
			t.Errorf("%s: Append of an invalid record: no error", name)
		}
	}
	if _, err := writer.Append(t.Context(), hub, last, nil); err == nil {
		t.Error("Append of no records: no error")
	}
	// Commands move the end of the log, and not the last event.
	seq, err := other.AppendCommand(t.Context(), hub, []byte(`{}`))
	if err != nil || seq != last+1 {
		t.Fatalf("AppendCommand = %d, %v; want %d", seq, err, last+1)
	}
	if seq, err = other.Append(t.Context(), hub, last, events(1)); err != nil || seq != last+2 {
		t.Errorf("Append after a command = %d, %v; want %d", seq, err, last+2)
	}
	writer.check(t, hub, int(last)+2)
	// The hub's stream is completed on request.
	if err := other.AwaitView(t.Context(), hub, last+2); err != nil {
		t.Fatalf("AwaitView: %v", err)
	}
	conns := broker.Connect(t)
	info, err := jsapi.New(conns.Shards[streams.ShardOf(hub, streamstest.Shards)]).Info(
		t.Context(), streams.HubStream(hub),
	)
	if err != nil || info.State.LastSeq != last+2 {
		t.Errorf("the hub's stream ends at %d, %v; want %d", info.State.LastSeq, err, last+2)
	}
}

// States are stored only after the log's last record, whatever that is.
func TestAppendStates(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	writer := start(t, broker, nil)
	other := start(t, broker, nil)
	writer.serve(t, always)
	hub, epoch := hubID(1), domain.NewEpochID(0xa)
	last, err := writer.Append(t.Context(), hub, 0, events(3))
	if err != nil {
		t.Fatal(err)
	}
	for name, add := range map[string]func() (uint64, error){
		"a state": func() (uint64, error) {
			return writer.AppendState(t.Context(), hub, epoch, "org", []byte("read"))
		},
		"a command": func() (uint64, error) {
			return writer.AppendCommand(t.Context(), hub, []byte(`{}`))
		},
		"an event": func() (uint64, error) { return writer.Append(t.Context(), hub, last, events(1)) },
	} {
		for where, r := range map[string]*replica{"writer": writer, "other": other} {
			end, err := r.Append(t.Context(), hub, 0, events(1))
			if !errors.Is(err, jsapi.ErrConflict) {
				t.Fatalf("Append to an empty log: %d, %v, want ErrConflict", end, err)
			}
			before, _ := writer.Tip(hub)
			if last = before.EventSeq(); last == 0 {
				t.Fatal("the log has no event")
			}
			if end, err = add(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			state := func() []journal.Record {
				return []journal.Record{{
					Kind: journal.KindState, EpochID: epoch, OrgID: "org", Payload: []byte("snapshot"),
				}}
			}
			if _, err = r.Append(t.Context(), hub, before.Seq, state()); !errors.Is(err, jsapi.ErrConflict) {
				t.Errorf("%s: states that lack %s: %v, want ErrConflict", where, name, err)
			}
			if seq, err := r.Append(t.Context(), hub, end, state()); err != nil || seq != end+1 {
				t.Errorf("%s: states after %s: %d, %v, want %d", where, name, seq, err, end+1)
			}
		}
	}
}

// An invalid append fails alone: those of other hubs that wait with it are stored.
func TestInvalidAppendFailsAlone(t *testing.T) {
	t.Parallel()
	writer := start(t, streamstest.New(t), nil)
	writer.serve(t, always)
	var wg sync.WaitGroup
	for h := range 40 {
		wg.Go(func() {
			records := events(1)
			if h%2 == 1 {
				records[0].Payload = make([]byte, journal.MaxPayload+1)
			}
			if _, err := writer.Append(t.Context(), hubID(h), 0, records); (err != nil) != (h%2 == 1) {
				t.Errorf("Append of hub %d: %v", h, err)
			}
		})
	}
	wg.Wait()
}

// Many appends to many logs share commits. Each log has every append once, and of two appends after
// the same event one fails.
func TestConcurrentAppends(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	writer := start(t, broker, nil)
	other := start(t, broker, nil)
	writer.serve(t, always)
	const hubs, appends = 20, 10
	var conflicts atomic.Int64
	var wg sync.WaitGroup
	for h := range hubs {
		for _, r := range []*replica{writer, other} {
			wg.Go(func() {
				var last uint64
				for stored := 0; stored < appends; {
					seq, err := r.Append(t.Context(), hubID(h), last, events(2))
					switch {
					case err == nil:
						last = seq
						stored++
					case errors.Is(err, jsapi.ErrConflict):
						conflicts.Add(1)
						if err := r.Sync(t.Context(), hubID(h)); err != nil {
							t.Error(err)
							return
						}
						tip, _ := r.Tip(hubID(h))
						last = tip.EventSeq()
					default:
						t.Errorf("Append: %v", err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	for h := range hubs {
		writer.check(t, hubID(h), 2*2*appends)
		other.check(t, hubID(h), 2*2*appends)
	}
	t.Logf("%d conflicts", conflicts.Load())
}

// Two replicas that both believe that they hold the lease cannot both store: every append that was
// confirmed is in the log once, and nothing else but appends with an unknown outcome.
func TestTwoWriters(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	first, second := start(t, broker, nil), start(t, broker, nil)
	first.serve(t, always)
	hub := hubID(1)
	var wg sync.WaitGroup
	var confirmed, unknown atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	for _, r := range []*replica{first, second} {
		for range 4 {
			wg.Go(func() {
				for ctx.Err() == nil {
					_, err := r.AppendCommand(t.Context(), hub, []byte(`{}`))
					switch {
					case err == nil:
						confirmed.Add(1)
					case errors.Is(err, jsapi.ErrOutcomeUnknown):
						unknown.Add(1)
					default:
						t.Errorf("AppendCommand: %v", err)
						return
					}
				}
			})
		}
	}
	for range 3 {
		stop := second.serve(t, always)
		before := confirmed.Load()
		streamstest.Eventually(t, "appends go on", func() bool {
			return confirmed.Load() > before+20
		})
		stop()
	}
	cancel()
	wg.Wait()
	if err := first.Sync(t.Context(), hub); err != nil {
		t.Fatal(err)
	}
	tip, _ := first.Tip(hub)
	stored := int64(tip.Seq)
	if stored < confirmed.Load() || stored > confirmed.Load()+unknown.Load() {
		t.Errorf(
			"the log has %d records, want %d confirmed and at most %d of unknown outcome", stored,
			confirmed.Load(), unknown.Load(),
		)
	}
	first.check(t, hub, int(stored))
	second.check(t, hub, int(stored))
}

// gate is a way to the broker that can be closed for new connections.
type gate struct{ closed atomic.Bool }

// Dial implements nats.CustomDialer.
func (g *gate) Dial(network, address string) (net.Conn, error) {
	if g.closed.Load() {
		return nil, errors.New("closed")
	}
	return net.Dial(network, address)
}

// A writer that lost its lease while the broker was out of reach went on with its commit for 15 s,
// and stayed subscribed at the broker afterwards: half of the appends of other replicas got no
// answer.
func TestWriterEndsWhileTheBrokerIsAway(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	var way gate
	conns, err := streams.Connect(
		t.Context(), streamstest.NewNetwork(t, broker).Credentials(), nats.SetCustomDialer(&way),
		streams.WithLog(streamstest.Logger()),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conns.Close)
	first, second := startOn(t, conns, 1, nil), start(t, broker, nil)
	var held atomic.Bool
	held.Store(true)
	stop := first.serve(t, held.Load)
	if _, err := first.AppendCommand(t.Context(), hubID(1), []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	way.closed.Store(true)
	if err := conns.Cloud.ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	streamstest.Eventually(t, "the connection is lost", conns.Cloud.IsReconnecting)
	appended := make(chan error, 1)
	go func() {
		_, err := first.AppendCommand(t.Context(), hubID(1), []byte(`{}`))
		appended <- err
	}()
	streamstest.Eventually(t, "a commit is under way", func() bool {
		return first.IsCommitting(hubID(1), time.Now().Add(time.Hour))
	})
	held.Store(false)
	began := time.Now()
	stop()
	if err := <-appended; !errors.Is(err, jsapi.ErrOutcomeUnknown) {
		t.Errorf("append when the lease was lost: %v, want ErrOutcomeUnknown", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the writer ended %s after its lease, want at once", took)
	}
	way.closed.Store(false)
	streamstest.Eventually(t, "the connection is back", conns.Cloud.IsConnected)
	second.serve(t, always)
	for range 20 {
		if _, err := first.AppendCommand(t.Context(), hubID(2), []byte(`{}`)); err != nil {
			t.Fatalf("append by way of the other replica: %v", err)
		}
	}
}

// Times grow although the clock jumps back by an hour, also in the next writer.
func TestClockJumpsBack(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	var offset atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
	first, second := start(t, broker, now), start(t, broker, now)
	stop := first.serve(t, always)
	hub := hubID(1)
	last, err := first.Append(t.Context(), hub, 0, events(3))
	if err != nil {
		t.Fatal(err)
	}
	offset.Store(int64(-time.Hour))
	if last, err = first.Append(t.Context(), hub, last, events(3)); err != nil {
		t.Fatal(err)
	}
	stop()
	second.serve(t, always)
	if _, err = second.Append(t.Context(), hub, last, events(3)); err != nil {
		t.Fatal(err)
	}
	first.check(t, hub, 9)
	second.check(t, hub, 9)
}

// A log from before there was a journal goes on with its numbering, and its last event counts.
func TestLogFromBeforeTheJournal(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	conns := broker.Connect(t)
	hub := hubID(1)
	nc := conns.Shards[streams.ShardOf(hub, streamstest.Shards)]
	js, err := nc.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	_, err = js.AddStream(&nats.StreamConfig{
		Name: streams.HubStream(hub), Subjects: []string{streams.LogFilter(hub)},
		MaxAge: time.Hour, AllowDirect: true, DenyDelete: true,
		RePublish: &nats.RePublish{
			Source: streams.LogFilter(hub), Destination: streams.FeedDestination(hub),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		header := nats.Header{"Hubcloud-Epoch": {domain.NewEpochID(1).String()}}
		_, err := js.PublishMsg(&nats.Msg{
			Subject: streams.HubEventSubject(hub), Header: header,
			Data: []byte(`{"type":"channel.observed"}`),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	r := start(t, broker, nil)
	r.serve(t, always)
	if _, ok := r.Tip(hub); ok {
		t.Error("Tip knows a log that was never journaled")
	}
	if _, err := r.Append(t.Context(), hub, 4, events(1)); !errors.Is(err, jsapi.ErrConflict) {
		t.Errorf("Append after the fourth of five events: %v, want ErrConflict", err)
	}
	if last, err := r.Append(t.Context(), hub, 5, events(2)); err != nil || last != 7 {
		t.Errorf("Append = %d, %v; want 7", last, err)
	}
	if err := r.AwaitView(t.Context(), hub, 7); err != nil {
		t.Fatal(err)
	}
	info, err := jsapi.New(nc).Info(t.Context(), streams.HubStream(hub))
	if err != nil || info.State.FirstSeq != 1 || info.State.LastSeq != 7 {
		t.Errorf("the stream has %+v, %v; want the sequences 1 to 7", info, err)
	}
}

// While nobody writes the journal, appends wait; then they fail with a temporary error, and
// nothing is stored.
func TestNoWriter(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	r := start(t, broker, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := r.AppendCommand(ctx, hubID(1), []byte(`{}`)); !jsapi.IsTemporary(err) {
		t.Errorf("AppendCommand without a writer: %v, want a temporary error", err)
	}
	waiting := make(chan error, 1)
	go func() {
		_, err := r.AppendCommand(t.Context(), hubID(1), []byte(`{}`))
		waiting <- err
	}()
	r.serve(t, always)
	select {
	case err := <-waiting:
		if err != nil {
			t.Errorf("AppendCommand that waited for a writer: %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("AppendCommand has not returned after a minute")
	}
	r.check(t, hubID(1), 1)
}

// The journal has the records of a hub, and FlushViews completes its stream, from any process.
func TestRecordsAndFlush(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	writer := start(t, broker, nil)
	other := start(t, broker, nil)
	conns := broker.Connect(t)
	if err := logwriter.FlushViews(t.Context(), conns.Cloud, writer.Groups()); err != nil {
		t.Errorf("FlushViews without a writer: %v", err)
	}
	writer.serve(t, always)
	hub := hubID(1)
	last, err := writer.Append(t.Context(), hub, 0, events(300))
	if err != nil {
		t.Fatal(err)
	}
	if err := logwriter.FlushViews(t.Context(), conns.Cloud, writer.Groups()); err != nil {
		t.Fatalf("FlushViews: %v", err)
	}
	info, err := jsapi.New(conns.Shard(hub)).Info(t.Context(), streams.HubStream(hub))
	if err != nil || info.State.LastSeq != last {
		t.Errorf("the hub's stream ends at %d, %v; want %d", info.State.LastSeq, err, last)
	}
	other.check(t, hub, 300)
	if oldest, err := other.Oldest(t.Context(), hub, time.Time{}); err != nil || oldest != 1 {
		t.Errorf("Oldest = %d, %v; want 1", oldest, err)
	}
	next := uint64(101)
	for next <= last {
		records, err := other.Records(t.Context(), hub, next, last, 1<<20)
		if err != nil || len(records) == 0 || records[0].Seq != next {
			t.Fatalf("Records from %d: %d records, %v", next, len(records), err)
		}
		next += uint64(len(records))
	}
	if _, err := other.Records(t.Context(), hubID(2), 1, 1, 1<<20); !errors.Is(err, journal.ErrGone) {
		t.Errorf("Records of an unknown hub: %v, want ErrGone", err)
	}
}

// The index was saved at an orderly stop only if the group was still written when the followers ended,
// which it never was: each start read up to five minutes of the journal, and a start after a day
// without the service knew the end of no log.
func TestIndexIsSavedAtTheEnd(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	r := start(t, broker, nil)
	stop := r.serve(t, always)
	for n := range 10 {
		if _, err := r.AppendCommand(t.Context(), hubID(n), []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	journals, err := journal.New(journal.Config{
		Conn: broker.Connect(t).Cloud, Retention: time.Hour, Logger: streamstest.Logger(),
	})
	if err != nil {
		t.Fatal(err)
	}
	end, err := journals.End(t.Context(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	index, err := journals.LoadIndex(t.Context(), 0)
	if err != nil || index.Position() != end || index.Hubs() != 10 {
		t.Errorf("after the stop: %d hubs up to %d, %v; want 10 up to %d", index.Hubs(),
			index.Position(), err, end)
	}
}

// In a cluster, a busy writer commits at most once in 20 ms, so that appends share commits. Single
// appends never wait for that.
func TestBusyWriterPauses(t *testing.T) {
	t.Parallel()
	const pause = 20 * time.Millisecond
	_, conns := streamstest.NewConnectedCluster(t)
	r := startOn(t, conns, 3, nil)
	r.serve(t, always)
	store := func(hub domain.HubID, appends int) {
		var last uint64
		for range appends {
			var err error
			if last, err = r.Append(t.Context(), hub, last, events(1)); err != nil {
				t.Errorf("Append: %v", err)
				return
			}
		}
	}
	const hubs, appends = 64, 20
	store(hubID(hubs), 1)
	r.check(t, hubID(hubs), 1)
	committed := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.commits
	}
	before, began := committed(), time.Now()
	var wg sync.WaitGroup
	for h := range hubs {
		wg.Go(func() { store(hubID(h), appends) })
	}
	wg.Wait()
	for h := range hubs {
		r.check(t, hubID(h), appends)
	}
	// Commits of fewer than four appends do not pause: the first ones and the last ones.
	most := int(time.Since(began)/pause) + 10
	if got := committed() - before; got > most {
		t.Errorf("%d appends: got %d commits, want at most %d", hubs*appends, got, most)
	}

	next := hubs
	streamstest.Eventually(t, "no pause follows a single append", func() bool {
		next += 2
		store(hubID(next), 1)
		began := time.Now()
		store(hubID(next+1), 1)
		return time.Since(began) < pause/2
	})
}
