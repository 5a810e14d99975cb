package tap_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/tap"
)

// TestHistoryThenLive: a tap that begins in the midst of things gives every event of every hub once
// and in order, also of hubs that come later.
func TestHistoryThenLive(t *testing.T) {
	t.Parallel()
	const hubs, late, batches = 20, 10, 30
	r := newRig(t, time.Hour)
	for n := range hubs {
		r.store(hubID(n), 1+n*40)
	}
	var writers sync.WaitGroup
	begin := make(chan struct{})
	for n := range hubs + late {
		writers.Go(func() {
			<-begin
			for i := range batches {
				r.store(hubID(n), 1+(n+i)%7)
			}
		})
	}
	close(begin)
	out := newSink()
	u := r.start(tap.Config{Follow: true, Output: out})
	writers.Wait()
	want := 0
	for _, n := range r.n {
		want += n
	}
	got := numbers(t, out.await(t, want))
	for n := range hubs + late {
		consecutive(t, hubID(n), got[hubID(n)], r.n[hubID(n)])
	}
	if err := u.end(); err != nil {
		t.Error(err)
	}
	if got := len(out.all()); got != want {
		t.Errorf("%d records, want %d", got, want)
	}
}

// TestEndsAtTheHead: without Follow, a tap gives what there was and ends.
func TestEndsAtTheHead(t *testing.T) {
	t.Parallel()
	r := newRig(t, time.Hour)
	for n := range 5 {
		r.store(hubID(n), 600)
	}
	out := newSink()
	if err := r.start(tap.Config{Output: out}).wait(); err != nil {
		t.Fatal(err)
	}
	for id, got := range numbers(t, out.all()) {
		consecutive(t, id, got, 600)
	}
	first := out.all()[0]
	if first.OrgID != org || first.Seq == 0 || first.ID == "" ||
		time.Since(first.Stored) > patient {
		t.Errorf("the first record is %+v", first)
	}
	// Nothing there at all is an end too.
	empty := newRig(t, time.Hour)
	if err := empty.start(tap.Config{Output: newSink()}).wait(); err != nil {
		t.Error(err)
	}
}

// TestWhatIsChosen: hubs, types, a time to begin with, commands, and the next event only.
func TestWhatIsChosen(t *testing.T) {
	t.Parallel()
	r := newRig(t, time.Hour)
	r.store(hubID(1), 20)
	r.store(hubID(2), 20)
	stored := newSink()
	if err := r.start(tap.Config{Output: stored}).wait(); err != nil {
		t.Fatal(err)
	}
	since := time.Now()
	for {
		// Until the broker's clock, which stores in the same millisecond otherwise, is past it.
		if time.Since(since) > 2*time.Millisecond {
			break
		}
	}
	r.store(hubID(2), 10)
	if _, err := r.logs.AppendCommand(t.Context(), hubID(2), []byte(`{"key":"lock","value":true}`), nil); err != nil {
		t.Fatal(err)
	}
	r.store(hubID(3), 10)

	for name, c := range map[string]struct {
		cfg  tap.Config
		want string
	}{
		"a hub": {tap.Config{Hubs: []domain.HubID{hubID(1)}}, "hub-aaaa-aaaa-0001: 1-20"},
		"a type": {
			tap.Config{Types: []string{"device.updated"}, Hubs: []domain.HubID{hubID(2)}},
			"hub-aaaa-aaaa-0002: 10,20,30",
		},
		"types by prefix": {
			tap.Config{Types: []string{"device.*", "rule.fired"}, Hubs: []domain.HubID{hubID(1)}},
			"hub-aaaa-aaaa-0001: 10,20",
		},
		"a time": {
			tap.Config{Since: since}, "hub-aaaa-aaaa-0002: 21-30; hub-aaaa-aaaa-0003: 1-10",
		},
		"no such hub": {tap.Config{Hubs: []domain.HubID{hubID(9)}}, ""},
	} {
		out := newSink()
		c.cfg.Output = out
		if err := r.start(c.cfg).wait(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := summary(numbers(t, out.all())); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}

	out := newSink()
	if err := r.start(tap.Config{
		Hubs: []domain.HubID{hubID(2)}, Commands: true, Types: []string{"none"}, Output: out,
	}).wait(); err != nil {
		t.Fatal(err)
	}
	if got := out.all(); len(got) != 1 || got[0].Type != tap.TypeCommand ||
		!strings.Contains(string(got[0].Envelope), `"data":{"key":"lock","value":true}`) {
		t.Errorf("commands: %+v", got)
	}
}

// TestNextEventOnly: New begins with what is stored after the tap has begun, and a hub that comes
// later with its first event.
func TestNextEventOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, time.Hour)
	r.store(hubID(1), 20)
	out := newSink()
	path := t.TempDir() + "/checkpoint"
	r.start(
		tap.Config{
			New:             true,
			Follow:          true,
			Output:          out,
			Checkpoint:      path,
			CheckpointEvery: 5 * time.Millisecond,
		},
	)
	// The checkpoint says where it has begun.
	streamstest.Eventually(t, "the checkpoint has 20 events of the hub", func() bool {
		c, err := tap.ReadCheckpoint(path)
		return err == nil && c.Hubs[hubID(1)].Seq == 20
	})
	r.store(hubID(1), 5)
	r.store(hubID(2), 5)
	if got := summary(numbers(t, out.await(t, 10))); got != "hub-aaaa-aaaa-0001: 21-25; hub-aaaa-aaaa-0002: 1-5" {
		t.Error(got)
	}
}

// TestBrokerAway: a tap outlives its broker, more than once, and nothing is missing or repeated.
func TestBrokerAway(t *testing.T) {
	t.Parallel()
	const hubs, rounds = 6, 3
	r := newRig(t, time.Hour)
	out := newSink()
	u := r.start(tap.Config{Follow: true, Output: out})
	want := 0
	for range rounds {
		for n := range hubs {
			r.store(hubID(n), 50)
			want += 50
		}
		r.broker.Stop()
		r.broker.Start(t)
		streamstest.Eventually(t, "the connections are back", func() bool {
			return r.conns.Shards[0].FlushTimeout(time.Second) == nil &&
				r.conns.Shards[3].FlushTimeout(time.Second) == nil
		})
	}
	got := numbers(t, out.await(t, want))
	for n := range hubs {
		consecutive(t, hubID(n), got[hubID(n)], 50*rounds)
	}
	if err := u.end(); err != nil {
		t.Error(err)
	}
}

// TestOutputFails: what the output says ends the tap.
func TestOutputFails(t *testing.T) {
	t.Parallel()
	r := newRig(t, time.Hour)
	r.store(hubID(1), 3)
	out := newSink()
	out.fail = func() error { return tap.ErrReaderGone }
	if err := r.start(tap.Config{Follow: true, Output: out}).wait(); err != tap.ErrReaderGone {
		t.Errorf("%v", err)
	}
}

// TestSlowOutput: an output that stands still costs no memory that grows, and gets everything once
// it goes on.
func TestSlowOutput(t *testing.T) {
	t.Parallel()
	r := newRig(t, time.Hour)
	out := newSink()
	gate := make(chan struct{})
	out.fail = func() error { <-gate; return nil }
	r.start(tap.Config{Follow: true, Output: out})
	for range 40 {
		for n := range 4 {
			r.store(hubID(n), 25)
		}
	}
	close(gate)
	for id, got := range numbers(t, out.await(t, 4000)) {
		consecutive(t, id, got, 1000)
	}
}

// TestLogReplaced: a log that was made anew under a running or a stopped tap is told, and read from
// its beginning.
func TestLogReplaced(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]int{"shorter": 3, "longer": 50} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, time.Hour)
			path := t.TempDir() + "/checkpoint"
			r.store(hubID(1), 10)
			if err := r.start(tap.Config{Output: newSink(), Checkpoint: path}).wait(); err != nil {
				t.Fatal(err)
			}
			js, err := jetstream.New(r.conns.Shard(hubID(1)))
			if err != nil {
				t.Fatal(err)
			}
			if err := js.DeleteStream(t.Context(), streams.HubStream(hubID(1))); err != nil {
				t.Fatal(err)
			}
			r.last[hubID(1)], r.n[hubID(1)] = 0, 0
			r.store(hubID(1), again)
			out := newSink()
			if err := r.start(tap.Config{Output: out, Checkpoint: path}).wait(); err != nil {
				t.Fatal(err)
			}
			got := out.all()
			if len(got) != again+1 || got[0].Type != tap.TypeGap ||
				!strings.Contains(
					string(got[0].Envelope),
					`"data":{"reason":"log_replaced","from":null,"to":null}`,
				) {
				t.Fatalf("%d records, the first is %s", len(got), got[0].Envelope)
			}
			consecutive(t, hubID(1), numbers(t, got[1:])[hubID(1)], again)
		})
	}
}

// TestLogBegunAnew: a hub that was reset is told, between the last event of the one log and the
// first of the other.
func TestLogBegunAnew(t *testing.T) {
	t.Parallel()
	r := newRig(t, time.Hour)
	out := newSink()
	r.start(tap.Config{Follow: true, Output: out})
	r.store(hubID(1), 3)
	out.await(t, 3)
	r.mu.Lock()
	r.epochs[hubID(1)] = domain.NewEpochID(0xb)
	r.mu.Unlock()
	r.store(hubID(1), 2)
	got := out.await(t, 6)
	if got[3].Type != tap.TypeLogBegun ||
		!strings.Contains(
			string(got[3].Envelope), `"data":{"former":"0000000a","log":"0000000b"}`,
		) ||
		number(t, got[4]) != 4 {
		t.Errorf("%s, then %s", got[3].Envelope, got[4].Envelope)
	}
}

// summary writes numbers as "hub: 1-3,7; hub: 2", hubs in order.
func summary(all map[domain.HubID][]int) string {
	var parts []string
	for n := range 10 {
		numbers := all[hubID(n)]
		if len(numbers) == 0 {
			continue
		}
		var runs []string
		for i := 0; i < len(numbers); {
			j := i
			for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
				j++
			}
			if j > i {
				runs = append(runs, fmt.Sprintf("%d-%d", numbers[i], numbers[j]))
			} else {
				runs = append(runs, fmt.Sprint(numbers[i]))
			}
			i = j + 1
		}
		parts = append(parts, string(hubID(n))+": "+strings.Join(runs, ","))
	}
	return strings.Join(parts, "; ")
}
