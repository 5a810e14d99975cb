package shares

import (
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var day = time.Date(2026, 1, 2, 3, 4, 5, 123456000, time.UTC)

// The limiter must behave like an explicit token bucket.
func TestRateIsATokenBucket(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const rate = 50
		burst := rapid.IntRange(1, 100).Draw(t, "burst")
		interval := time.Second / rate
		l := NewRate[int](nil, RateConfig{PerSecond: rate, Burst: burst}, day)
		now := day
		tokens := map[int]time.Duration{} // as the time in which they are regained
		last := map[int]time.Time{}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "ms")) * time.Millisecond)
			if rapid.IntRange(0, 40).Draw(t, "pause") == 0 {
				now = now.Add(
					time.Duration(rapid.IntRange(0, 5000).Draw(t, "pause ms")) * time.Millisecond,
				)
			}
			id := rapid.IntRange(0, 2).Draw(t, "id")
			if _, ok := last[id]; !ok {
				tokens[id], last[id] = time.Duration(burst)*interval, now
			}
			tokens[id] = min(time.Duration(burst)*interval, tokens[id]+now.Sub(last[id]))
			last[id] = now
			granted := tokens[id] >= interval
			if granted {
				tokens[id] -= interval
			}
			got := l.Take(id, now)
			if got.Granted != granted || got.Remaining != int(tokens[id]/interval) ||
				got.Full != time.Duration(burst)*interval-tokens[id] {
				t.Fatalf("got %+v, want granted %t with %s in the bucket", got, granted, tokens[id])
			}
			if !granted && got.Next != interval-tokens[id] {
				t.Fatalf("got next in %s, want %s", got.Next, interval-tokens[id])
			}
		}
	})
}

// Memory must not grow with the number of addresses that made one request.
func TestRateForgets(t *testing.T) {
	t.Parallel()
	l := NewRate[string](nil, RateConfig{PerSecond: 50, Burst: 100}, day)
	now := day
	for i := range 50_000 {
		now = now.Add(time.Millisecond)
		l.Take(strconv.Itoa(i), now)
		if held := len(l.current) + len(l.previous); held > 8002 {
			t.Fatalf("got %d buckets after %d clients, want at most 8002", held, i)
		}
	}
}

// Regression: a request that waited before it was counted was rejected although its bucket had
// tokens. It was counted at its time of arrival, before the tokens of other requests were regained.
func TestTakeOutOfOrder(t *testing.T) {
	t.Parallel()
	start := time.Now()
	l := NewRate[string](nil, RateConfig{PerSecond: 10, Burst: 10}, start)
	later := start.Add(2 * time.Second)
	if a := l.Take("key", later); !a.Granted {
		t.Fatalf("first request: got %+v, want it granted", a)
	}
	a := l.Take("key", start)
	if !a.Granted || a.Remaining != 8 {
		t.Errorf(
			"request from 2 s before: got granted %t, %d remaining, want true, 8", a.Granted,
			a.Remaining,
		)
	}
}

// Spenders of one bucket go on in the order in which they came, each once its tokens are regained.
func TestSpend(t *testing.T) {
	t.Parallel()
	registry := new(Registry)
	l := NewRate[string](registry, RateConfig{PerSecond: 10, Burst: 10}, day)
	for i, c := range []struct {
		n    int
		want time.Duration
	}{{9, 0}, {1, 0}, {1, 100}, {3, 400}, {1, 500}, {100, 1000}, {1, 1000}} {
		if got := l.Spend("a", c.n, day); got != c.want*time.Millisecond {
			t.Errorf("%d: after %d more got a wait of %v, want %d ms", i, c.n, got, c.want)
		}
	}
	if held := registry.Report()[0].HeldBack; held != 4 {
		t.Errorf("got %d waits that count as held back, want the 4 of more than 100 ms", held)
	}
	if got := l.Spend("b", 1, day); got != 0 {
		t.Errorf("another spender: got a wait of %v, want none", got)
	}
	if got := l.Spend("a", 1, day.Add(2*time.Second)); got != 0 {
		t.Errorf("after the tokens are regained: got a wait of %v, want none", got)
	}
}
