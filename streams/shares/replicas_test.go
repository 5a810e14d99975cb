package shares

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// memoryBus connects the memoryClients of a test.
type memoryBus struct {
	mu        sync.Mutex
	listeners map[*memoryClient]func([]byte)
}

// memoryClient is a replica's Bus.
type memoryClient struct{ bus *memoryBus }

func (c *memoryClient) Publish(message []byte) error {
	c.bus.mu.Lock()
	defer c.bus.mu.Unlock()
	for other, fn := range c.bus.listeners {
		if other != c {
			fn(message)
		}
	}
	return nil
}

func (c *memoryClient) Subscribe(fn func([]byte)) (func(), error) {
	c.bus.mu.Lock()
	defer c.bus.mu.Unlock()
	c.bus.listeners[c] = fn
	return func() {
		c.bus.mu.Lock()
		defer c.bus.mu.Unlock()
		delete(c.bus.listeners, c)
	}, nil
}

// A client of three replicas gets as many grants as from one, except for those at the same moment.
func TestShareRate(t *testing.T) {
	t.Parallel()
	const rate, burst, replicas, seconds = 50, 100, 3, 20
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		between := &memoryBus{listeners: map[*memoryClient]func([]byte){}}
		var limiters []*Rate[string]
		var sharing sync.WaitGroup
		for range replicas {
			l := NewRate[string](nil, RateConfig{PerSecond: rate, Burst: burst}, time.Now())
			limiters = append(limiters, l)
			sharing.Go(func() {
				if err := ShareRate(ctx, l, &memoryClient{between}, time.Now); !errors.Is(
					err, context.Canceled,
				) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		granted, others := 0, 0
		for range seconds * 1000 {
			// One round of requests a millisecond, in the bubble's time.
			time.Sleep(time.Millisecond)
			for _, l := range limiters {
				if l.Take("busy", time.Now()).Granted {
					granted++
				}
			}
		}
		for _, l := range limiters {
			if l.Take("quiet", time.Now()).Remaining == burst-1 {
				others++
			}
		}
		cancel()
		sharing.Wait()
		// Each replica may grant a whole burst before the first report of the others.
		if least, most := burst+rate*(seconds-8), burst*replicas+rate*seconds; granted < least ||
			granted > most {
			t.Errorf(
				"got %d requests granted in %d s by %d replicas, want %d to %d", granted,
				seconds, replicas, least, most,
			)
		}
		if others != replicas {
			t.Errorf(
				"got %d replicas with a full bucket of another client, want %d", others, replicas,
			)
		}
	})
}

// Any reports of other replicas delay a client by two full buckets at most.
func TestChargeIsBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		burst := rapid.IntRange(1, 100).Draw(t, "burst")
		l := NewRate[string](nil, RateConfig{PerSecond: 50, Burst: burst}, day)
		now := day
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 200).Draw(t, "ms")) * time.Millisecond)
			l.Charge("a", rapid.Int().Draw(t, "charge"), now)
			if a := l.Take("a", now); a.Full > maxDebt*l.fill || a.Remaining < 0 ||
				a.Remaining > burst ||
				a.Next > maxDebt*l.fill {
				t.Fatalf("got %+v, want a debt of at most %d buckets", a, maxDebt)
			}
		}
		if a := l.Take("a", now.Add(maxDebt*l.fill)); !a.Granted || a.Remaining != burst-1 {
			t.Fatalf("after the longest wait: got %+v, want it granted with %d left", a, burst-1)
		}
	})
}

// Each client is in exactly one message, and messages have a bounded size.
func TestEncode(t *testing.T) {
	t.Parallel()
	granted := map[string]int{}
	for i := range 2*maxShared + 1 {
		granted[fmt.Sprintf("key%d", i)] = i + 1
	}
	sent := 0
	for _, message := range encode(granted) {
		part, err := decode(message)
		if err != nil {
			t.Fatal(err)
		}
		for id, n := range part {
			if granted[id] != n {
				t.Errorf("%s: got %d, want %d", id, n, granted[id])
			}
			sent++
		}
	}
	if sent != len(granted) {
		t.Errorf("got %d clients, want %d", sent, len(granted))
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"aBcdEf012345":3}`))
	f.Add([]byte(`{"a":-1,"b":1e9}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, message []byte) {
		l := NewRate[string](nil, RateConfig{PerSecond: 50, Burst: 100}, day)
		granted, err := decode(message)
		if err != nil && granted != nil {
			t.Errorf("decode: got grants %v with error %v, want one of both", granted, err)
		}
		for id, n := range granted {
			l.Charge(id, n, day)
			if a := l.Take(id, day); a.Remaining < 0 || a.Full > maxDebt*l.fill {
				t.Errorf("Take after Charge(%d): got %+v, want a bounded debt", n, a)
			}
		}
	})
}
