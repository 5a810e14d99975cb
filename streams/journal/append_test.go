package journal

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/jsapi"
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
		if _, err := r.Append(t.Context(), hub, last, make([]Record, 1)); err == nil {
			t.Errorf("%s: Append of an invalid record: no error", name)
		}
	}
	if _, err := writer.Append(t.Context(), hub, last, nil); err == nil {
		t.Error("Append of no records: no error")
	}
	// Commands move the end of the log, and not the last event.
	seq, err := other.appendCommand(t.Context(), hub)
	if err != nil || seq != last+1 {
		t.Fatalf("Append = %d, %v; want %d", seq, err, last+1)
	}
	if seq, err = other.Append(t.Context(), hub, last, events(1)); err != nil || seq != last+2 {
		t.Errorf("Append after a command = %d, %v; want %d", seq, err, last+2)
	}
	writer.check(t, hub, int(last)+2)
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
	streamstest.Must(t, err)
	state := func() []Record {
		return []Record{{Kind: KindState, EpochID: epoch, OrgID: "org", Payload: []byte("read")}}
	}
	for name, add := range map[string]func() (uint64, error){
		"a state": func() (uint64, error) {
			return writer.Append(t.Context(), hub, AnyEnd, state())
		},
		"a command": func() (uint64, error) {
			return writer.appendCommand(t.Context(), hub)
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
				records[0].Payload = make([]byte, MaxPayload+1)
			}
			if _, err := writer.Append(t.Context(), hubID(h), 0, records); (err != nil) != (h%2 == 1) {
				t.Errorf("Append of hub %d: %v", h, err)
			}
		})
	}
	wg.Wait()
}

// While nobody writes the journal, appends wait; then they fail with a temporary error, and
// nothing is stored.
func TestNoWriter(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	r := start(t, broker, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := r.appendCommand(ctx, hubID(1)); !jsapi.IsTemporary(err) {
		t.Errorf("Append without a writer: %v, want a temporary error", err)
	}
	waiting := make(chan error, 1)
	go func() {
		_, err := r.appendCommand(t.Context(), hubID(1))
		waiting <- err
	}()
	r.serve(t, always)
	select {
	case err := <-waiting:
		if err != nil {
			t.Errorf("Append that waited for a writer: %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("Append has not returned after a minute")
	}
	r.check(t, hubID(1), 1)
}

// The index was saved at an orderly stop only if the group was still written when the followers
// ended, which it never was: each start read up to five minutes of the journal, and a start after a
// day without the service knew the end of no log.
func TestIndexIsSavedAtTheEnd(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	r := start(t, broker, nil)
	stop := r.serve(t, always)
	for n := range 10 {
		if _, err := r.appendCommand(t.Context(), hubID(n)); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	journals := open(t, broker.Connect(t), Config{})
	end, err := journals.End(t.Context(), 0, 0)
	streamstest.Must(t, err)
	index, err := journals.LoadIndex(t.Context(), 0)
	if err != nil || index.Position() != end || len(index.tips) != 10 {
		t.Errorf("after the stop: %d hubs up to %d, %v; want 10 up to %d", len(index.tips),
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

// Before the first append to a log in a term, the holder of the lease is asked for what it must
// know. While that fails nothing is stored, and records of an epoch that has ended are rejected.
func TestBegin(t *testing.T) {
	t.Parallel()
	r := start(t, streamstest.New(t), nil)
	hub, failed := hubID(1), errors.New("not known yet")
	var mu sync.Mutex
	asked := 0
	answer, answerErr := domain.EpochID{}, failed
	begin := func(_ context.Context, _ domain.HubID) (domain.EpochID, error) {
		mu.Lock()
		defer mu.Unlock()
		asked++
		return answer, answerErr
	}
	stop := r.serveLease(t, Lease{Held: always, Begin: begin})
	if _, err := r.Append(t.Context(), hub, 0, events(1)); !errors.Is(err, failed) {
		t.Errorf("Append before what must be known: %v, want %v", err, failed)
	}
	answerErr = nil
	for want := range uint64(2) {
		if last, err := r.Append(t.Context(), hub, want, events(1)); err != nil || last != want+1 {
			t.Errorf("Append = %d, %v; want %d", last, err, want+1)
		}
	}
	stop()
	answer = domain.NewEpochID(1)
	r.serveLease(t, Lease{Held: always, Begin: begin})
	if _, err := r.Append(t.Context(), hub, 2, events(1)); !errors.Is(err, jsapi.ErrConflict) {
		t.Errorf("Append to an epoch that has ended: %v, want ErrConflict", err)
	}
	if asked != 3 {
		t.Errorf("asked %d times, want 3: once for the failure, and once in each term", asked)
	}
}
