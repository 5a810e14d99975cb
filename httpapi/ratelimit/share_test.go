package ratelimit

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

// hall is an in-memory bus.
type hall struct {
	mu        sync.Mutex
	listeners map[*seat]func([]byte)
}

type seat struct{ hall *hall }

func (s *seat) Publish(message []byte) error {
	s.hall.mu.Lock()
	defer s.hall.mu.Unlock()
	for other, fn := range s.hall.listeners {
		if other != s {
			fn(message)
		}
	}
	return nil
}

func (s *seat) Subscribe(fn func([]byte)) (func(), error) {
	s.hall.mu.Lock()
	defer s.hall.mu.Unlock()
	s.hall.listeners[s] = fn
	return func() {
		s.hall.mu.Lock()
		defer s.hall.mu.Unlock()
		delete(s.hall.listeners, s)
	}, nil
}

// A client of three replicas, in any order, gets as much as from one, except for what they grant at
// the same moment.
func TestShare(t *testing.T) {
	t.Parallel()
	const rate, burst, replicas, seconds = 50, 100, 3, 20
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		between := &hall{listeners: map[*seat]func([]byte){}}
		var limiters []*Limiter[string]
		var sharing sync.WaitGroup
		for range replicas {
			l := New[string](rate, burst, time.Now())
			limiters = append(limiters, l)
			sharing.Go(func() {
				if err := Share(ctx, l, &seat{between}, time.Now); !errors.Is(
					err, context.Canceled,
				) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		granted, others := 0, 0
		for range seconds * 1000 {
			// a client that asks as fast as it can, in the bubble's time
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
		// At the start each replica may grant a whole burst before the others report; over the
		// time they are one.
		if least, most := burst+rate*(seconds-8), burst*replicas+rate*seconds; granted < least ||
			granted > most {
			t.Errorf(
				"%d requests were granted in %d s by %d replicas, not between %d and %d", granted,
				seconds, replicas, least, most,
			)
		}
		if others != replicas {
			t.Error("another client paid for the busy one")
		}
	})
}

// Whatever the others report, a client waits for two full buckets at most.
func TestChargeIsBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		burst := rapid.IntRange(1, 100).Draw(t, "burst")
		l := New[string](50, burst, day)
		now := day
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 200).Draw(t, "ms")) * time.Millisecond)
			l.Charge("a", rapid.Int().Draw(t, "charge"), now)
			if a := l.Take("a", now); a.Full > maxDebt*l.fill || a.Remaining < 0 ||
				a.Remaining > burst ||
				a.Next > maxDebt*l.fill {
				t.Fatalf("%+v", a)
			}
		}
		if a := l.Take("a", now.Add(maxDebt*l.fill)); !a.Granted || a.Remaining != burst-1 {
			t.Fatalf("after the longest wait: %+v", a)
		}
	})
}

// Every client is in one message, and messages have a bounded size.
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
				t.Errorf("%s was sent as %d, not %d", id, n, granted[id])
			}
			sent++
		}
	}
	if sent != len(granted) {
		t.Errorf("%d of %d clients were sent", sent, len(granted))
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"aBcdEf012345":3}`))
	f.Add([]byte(`{"a":-1,"b":1e9}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, message []byte) {
		l := New[string](50, 100, day)
		granted, err := decode(message)
		if err != nil && granted != nil {
			t.Error("half a message counts")
		}
		for id, n := range granted {
			l.Charge(id, n, day)
			if a := l.Take(id, day); a.Remaining < 0 || a.Full > maxDebt*l.fill {
				t.Errorf("%+v", a)
			}
		}
	})
}
