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

// faithful is a hub that keeps to the link, on a bad day: what it sends may get lost or be sent
// twice, it may run out of room, and it may be reset.
type faithful struct {
	*hub
	random *rand.Rand
	log    string
	// first is the first number of the log that the cloud can have heard of, newest the highest
	// given, through what is acknowledged.
	first, newest, through uint64
	// oldest is the lowest number held: it has room for few.
	oldest uint64
	// lost holds the numbers that were dropped before they were acknowledged.
	lost map[uint64]bool
}

const room = 40

func (f *faithful) reset(log string) {
	f.log, f.first, f.newest, f.through, f.oldest, f.lost = log, 1, 0, 0, 1, map[uint64]bool{}
}

// emit gives n numbers more, and drops the oldest when there is no room for them.
func (f *faithful) emit(n uint64) (dropped bool) {
	f.newest += n
	for ; f.newest-f.oldest >= room; f.oldest++ {
		if f.oldest > f.through {
			f.lost[f.oldest] = true
			dropped = true
		}
	}
	f.oldest = max(f.oldest, 1)
	return dropped
}

// lossy sends a message that may not arrive, or arrive twice.
func (f *faithful) lossy(send func()) {
	for range []int{0, 1, 1, 1, 1, 2}[f.random.IntN(6)] {
		send()
	}
}

func (f *faithful) sayHello() {
	f.lossy(func() { f.hello(f.log, f.oldest, f.newest) })
}

// sendPending sends everything from through+1 on, in messages of odd sizes.
func (f *faithful) sendPending() {
	for from := max(f.through+1, f.oldest); from <= f.newest; {
		to := min(from+f.random.Uint64N(12), f.newest)
		f.lossy(func() { f.events(f.log, from, to) })
		from = to + 1
	}
}

// listen takes acks for a while.
func (f *faithful) listen(d time.Duration) {
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

// TestExactlyOnce lets a hub, the network, the bridge and the broker's answers misbehave at random,
// and then holds that its event log has every number once, in order, and gaps only where the hub
// has lost something.
func TestExactlyOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			misbehave(t, rand.New(rand.NewPCG(seed, 7)))
		})
	}
}

func misbehave(t *testing.T, random *rand.Rand) {
	r := newTestIngest(t, time.Hour)
	f := &faithful{hub: adopted(r), random: random}
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
			f.emit(room + random.Uint64N(5)) // a burst that nobody hears
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
			second := r.shard(f.id) // for a moment two look after the hub
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

// verify reads the log.
func (f *faithful) verify() {
	t := f.r.t
	next, skipped := uint64(0), 0
	for _, w := range strings.Fields(f.eventLog()) {
		var from, to uint64
		if n, _ := fmt.Sscanf(w, "skip:%d-%d", &from, &to); n == 0 {
			if err := json.Unmarshal([]byte(w), &from); err != nil {
				t.Fatalf("the log holds %s", w)
			}
			to = from
		} else {
			for seq := from; seq <= to; seq++ {
				skipped++
				if !f.lost[seq] {
					t.Errorf("%d is told to be lost and was not", seq)
				}
			}
		}
		if next != 0 && from != next {
			t.Fatalf("%s comes where %d should be", w, next)
		}
		next = to + 1
	}
	if next != f.newest+1 {
		t.Errorf("the log ends before %d; the hub's newest is %d", next, f.newest)
	}
	t.Logf(
		"log %s: through %d, %d lost, %d conflicts, %v beyond, %v repeats, %v resets", f.log,
		f.newest, skipped, int(f.r.count("conflicts_total")), f.r.count("messages_beyond_total"),
		f.r.count("events_repeated_total"), f.r.count("resets_total"),
	)
}
