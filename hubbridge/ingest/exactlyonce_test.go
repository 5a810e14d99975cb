package ingest_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

// randomHub is a hub that follows the protocol while messages are lost and repeated, its buffer
// overflows, and it is reset.
type randomHub struct {
	*hub
	random *rand.Rand
	log    string
	// newest is the highest number used, through the last one acknowledged, oldest the lowest one
	// held.
	newest, through, oldest uint64
	// lost holds the numbers that were dropped before they were acknowledged.
	lost map[uint64]bool
}

// capacity is how many events a randomHub holds.
const capacity = 40

// reset starts a new log.
func (f *randomHub) reset(log string) {
	f.log, f.newest, f.through, f.oldest, f.lost = log, 0, 0, 1, map[uint64]bool{}
}

// emit creates n events, and drops the oldest beyond capacity. It reports whether an event was
// dropped before it was acknowledged.
func (f *randomHub) emit(n uint64) (dropped bool) {
	f.newest += n
	for ; f.newest-f.oldest >= capacity; f.oldest++ {
		if f.oldest > f.through {
			f.lost[f.oldest] = true
			dropped = true
		}
	}
	f.oldest = max(f.oldest, 1)
	return dropped
}

// lossy calls send once, twice or not at all.
func (f *randomHub) lossy(send func()) {
	for range []int{0, 1, 1, 1, 1, 2}[f.random.IntN(6)] {
		send()
	}
}

func (f *randomHub) sayHello() {
	f.lossy(func() { f.hello(f.log, f.oldest, f.newest) })
}

// sendPending sends everything from through+1 on, in messages of odd sizes.
func (f *randomHub) sendPending() {
	for from := max(f.through+1, f.oldest); from <= f.newest; {
		to := min(from+f.random.Uint64N(12), f.newest)
		f.lossy(func() { f.events(f.log, from, to) })
		from = to + 1
	}
}

// listen handles acks until none has come for d.
func (f *randomHub) listen(d time.Duration) {
	for {
		got, ok := f.ackWithin(d)
		if !ok {
			return
		}
		if got.Log != f.log {
			continue
		}
		if got.Through > f.newest {
			f.r.t.Fatalf("ack %+v beyond the newest number %d", got, f.newest)
		}
		f.through = max(f.through, got.Through)
	}
}

// TestExactlyOnce runs a hub while messages and answers of the broker are lost and the bridge is
// killed, at random. Then the hub's event log must have every number once, in order, and gaps only
// where the hub has dropped events.
func TestExactlyOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			misbehave(t, rand.New(rand.NewPCG(seed, 7)))
		})
	}
}

// misbehave runs one sequence of random failures.
func misbehave(t *testing.T, random *rand.Rand) {
	r := newTestIngest(t, time.Hour)
	f := &randomHub{hub: adopted(r), random: random}
	f.reset("log0")
	logs := &faultyLogs{}
	s := r.shard(f.id, withLogs(logs))
	for step := range 80 {
		switch n := random.IntN(20); {
		case n < 8:
			if f.emit(1 + random.Uint64N(15)); f.oldest > f.through+1 {
				f.sayHello()
			}
			f.sendPending()
		case n < 11:
			f.sayHello()
		case n < 13:
			f.sendPending()
		case n == 13:
			f.emit(capacity + random.Uint64N(5)) // a burst that is not sent
		case n == 14:
			logs.set(once(jsapi.ErrOutcomeUnknown), nil)
		case n == 15:
			logs.set(nil, once(jsapi.ErrOutcomeUnknown))
		case n == 16:
			s.kill()
			s = r.shard(f.id, withLogs(logs))
		case n == 17:
			s.stop()
			s = r.shard(f.id, withLogs(logs))
		case n == 18:
			second := r.shard(f.id) // two processes serve the hub
			f.sendPending()
			f.listen(20 * time.Millisecond)
			second.kill()
		case step%3 == 0:
			f.reset(fmt.Sprintf("log%d", step))
			f.sayHello()
		}
		if random.IntN(3) > 0 {
			f.listen(time.Duration(random.IntN(15)) * time.Millisecond)
		}
	}
	logs.set(nil, nil)
	streamstest.Eventually(t, "everything is acknowledged", func() bool {
		if f.through < f.newest || f.newest == 0 {
			if f.newest == 0 {
				f.emit(1)
			}
			f.hello(f.log, f.oldest, f.newest)
			f.sendPending()
		}
		f.listen(100 * time.Millisecond)
		return f.newest > 0 && f.through == f.newest
	})
	f.verify()
}

// verify checks the hub's event log.
func (f *randomHub) verify() {
	t := f.r.t
	state, _, err := f.r.Directory.Hub(t.Context(), f.id)
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(f.eventLog())
	if state.OwnLog != "" {
		if len(words) == 0 || words[0] != "log_reset:factory_reset" {
			t.Fatalf("event log after a reset: got %q, want hub.log_reset as the first event", words)
		}
		words = words[1:]
	}
	next, skipped := uint64(0), 0
	for _, w := range words {
		var from, to uint64
		if n, _ := fmt.Sscanf(w, "skip:%d-%d", &from, &to); n == 0 {
			if err := json.Unmarshal([]byte(w), &from); err != nil {
				t.Fatalf("event log: got %s, want a number or a gap", w)
			}
			to = from
		} else {
			for seq := from; seq <= to; seq++ {
				skipped++
				if !f.lost[seq] {
					t.Errorf("event log: number %d is in a gap, but was not lost", seq)
				}
			}
		}
		if next != 0 && from != next {
			t.Fatalf("event log: got %s, want %d", w, next)
		}
		next = to + 1
	}
	if next != f.newest+1 {
		t.Errorf("event log ends with %d, want %d", next-1, f.newest)
	}
	t.Logf(
		"log %s: through %d, %d lost, %d conflicts, %v beyond, %v repeats, %v resets", f.log,
		f.newest, skipped, int(f.r.count("conflicts_total")), f.r.count("messages_beyond_total"),
		f.r.count("events_repeated_total"), f.r.count("resets_total"),
	)
}
