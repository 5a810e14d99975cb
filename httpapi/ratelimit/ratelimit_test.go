package ratelimit

import (
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var day = time.Date(2026, 1, 2, 3, 4, 5, 123456000, time.UTC)

// The limiter, which keeps one number for each bucket, behaves like an explicit token bucket.
func TestLimiterIsATokenBucket(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const rate = 50
		burst := rapid.IntRange(1, 100).Draw(t, "burst")
		interval := time.Second / rate
		l := New[int](rate, burst, day)
		now := day
		tokens := map[int]time.Duration{} // in time that it takes to earn them
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
				t.Fatalf("next in %s, want %s", got.Next, interval-tokens[id])
			}
		}
	})
}

// Addresses that came once do not take memory for long, however many there are.
func TestLimiterForgets(t *testing.T) {
	t.Parallel()
	l := New[string](50, 100, day)
	now := day
	for i := range 50_000 {
		now = now.Add(time.Millisecond)
		l.Take(strconv.Itoa(i), now)
		if held := len(l.current) + len(l.previous); held > 8002 {
			t.Fatalf("%d buckets are held after %d clients", held, i)
		}
	}
}

// A request that waited before it was counted used to be rejected although its bucket had tokens:
// it was counted at its time of arrival, before the tokens of other requests were regained.
func TestARequestThatWaited(t *testing.T) {
	t.Parallel()
	start := time.Now()
	l := New[string](10, 10, start)
	later := start.Add(2 * time.Second)
	if a := l.Take("key", later); !a.Granted {
		t.Fatal("the first request was rejected")
	}
	a := l.Take("key", start)
	if !a.Granted || a.Remaining != 8 {
		t.Errorf(
			"a request from 2 s before: granted %t, %d remain; want it granted, and 8", a.Granted,
			a.Remaining,
		)
	}
}
