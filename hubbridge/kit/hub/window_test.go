package hub

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// windowHub drives a window and records each message that it sends: "hello", or "FIRST-LAST" of
// events.
type windowHub struct {
	w              window
	now            time.Time
	oldest, newest uint64
	batch          uint64
	sent           []string
}

func newWindowHub(newest uint64) *windowHub {
	h := &windowHub{w: window{limit: 2000}, now: start, oldest: 1, newest: newest, batch: 500}
	h.w.connect()
	return h
}

func (h *windowHub) send() *windowHub {
	for {
		step := h.w.next(h.now, h.oldest, h.newest)
		switch {
		case step.hello:
			h.w.helloSent(h.now)
			h.sent = append(h.sent, "hello")
		case step.from > 0:
			last := step.from + min(step.limit, h.batch) - 1
			h.w.eventsSent(last, h.now)
			h.sent = append(h.sent, fmt.Sprintf("%d-%d", step.from, last))
		default:
			return h
		}
	}
}

func (h *windowHub) ack(through uint64) *windowHub {
	h.w.ack(through, h.now)
	h.oldest = max(h.oldest, through+1)
	h.newest = max(h.newest, through)
	return h
}

func (h *windowHub) after(d time.Duration) *windowHub {
	h.now = h.now.Add(d)
	return h
}

func (h *windowHub) drop(oldest uint64) *windowHub {
	h.oldest = oldest
	return h
}

// reconnect begins a new connection of a hub that still has the events from oldest on.
func (h *windowHub) reconnect(oldest uint64) *windowHub {
	h.w.disconnect()
	h.w.connect()
	return h.drop(oldest)
}

func (h *windowHub) add(n uint64) *windowHub {
	h.newest += n
	return h
}

// TestRules tries the rules of the package documentation, one per case.
func TestRules(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	for name, tc := range map[string]struct {
		h    *windowHub
		want []string
	}{
		"nothing is sent before the ack of the hello": {newWindowHub(3).send(), []string{"hello"}},
		"hello is repeated every 5 s": {
			newWindowHub(3).send().after(4999 * ms).send().after(ms).send().after(5 * time.Second).send(),
			[]string{"hello", "hello", "hello"},
		},
		"events start after the acknowledged number": {
			newWindowHub(42).send().ack(40).send(), []string{"hello", "41-42"},
		},
		"nothing to send": {
			newWindowHub(42).send().ack(42).send().after(time.Hour).send(), []string{"hello"},
		},
		"2,000 events are sent without an ack": {
			newWindowHub(5000).send().ack(0).send(),
			[]string{"hello", "1-500", "501-1000", "1001-1500", "1501-2000"},
		},
		"an ack allows further events": {
			newWindowHub(5000).send().ack(0).send().ack(500).send(),
			[]string{"hello", "1-500", "501-1000", "1001-1500", "1501-2000", "2001-2500"},
		},
		"events are sent again after 5 s without an ack": {
			newWindowHub(2).send().ack(0).send().after(4999 * ms).send().after(ms).send(),
			[]string{"hello", "1-2", "1-2"},
		},
		"an ack restarts the 5 s": {
			newWindowHub(1000).send().ack(0).send().after(4 * time.Second).ack(500).send().
				after(4 * time.Second).send(),
			[]string{"hello", "1-500", "501-1000"},
		},
		"a repeated ack shows a gap": {
			newWindowHub(1000).send().ack(0).send().ack(0).send(),
			[]string{"hello", "1-500", "501-1000", "1-500", "501-1000"},
		},
		"acks of messages in flight are ignored after a gap": {
			newWindowHub(1500).send().ack(0).send().ack(0).send().ack(0).ack(0).send(),
			[]string{"hello", "1-500", "501-1000", "1001-1500", "1-500", "501-1000", "1001-1500"},
		},
		"several messages are stored at once and acknowledged one by one": {
			newWindowHub(1500).send().ack(0).send().ack(1000).ack(1000).send(),
			[]string{"hello", "1-500", "501-1000", "1001-1500"},
		},
		"a gap after an ack": {
			newWindowHub(1500).send().ack(0).send().ack(500).ack(500).send(),
			[]string{"hello", "1-500", "501-1000", "1001-1500", "501-1000", "1001-1500"},
		},
		"a repeated ack with nothing in flight": {
			newWindowHub(2).send().ack(2).ack(2).send(), []string{"hello"},
		},
		"dropped events are reported in a hello": {
			newWindowHub(10).send().ack(2).drop(6).after(time.Second).send().ack(5).send(),
			[]string{"hello", "hello", "6-10"},
		},
		"hellos about dropped events are a second apart": {
			newWindowHub(10).send().ack(2).drop(6).after(900 * ms).send().after(100 * ms).send(),
			[]string{"hello", "hello"},
		},
		"the cloud is ahead of the hub": {
			newWindowHub(10).send().ack(20).add(1).send(), []string{"hello", "21-21"},
		},
		"an ack with a lower number is ignored": {
			newWindowHub(10).send().ack(5).send().ack(4).after(4999 * ms).send().after(ms).send(),
			[]string{"hello", "6-10", "6-10"},
		},
		"the first ack of a new connection counts although it is lower": {
			newWindowHub(10).send().ack(5).reconnect(3).send().ack(2).send(),
			[]string{"hello", "hello", "3-10"},
		},
		"one event at a time": {
			newWindowHub(0).send().ack(0).add(1).send().ack(1).add(1).send(),
			[]string{"hello", "1-1", "2-2"},
		},
	} {
		if !slices.Equal(tc.h.sent, tc.want) {
			t.Errorf("%s: sent %v, want %v", name, tc.h.sent, tc.want)
		}
	}
}

// TestEverythingArrives runs a hub of limited capacity against a cloud that keeps to the protocol,
// over a network that loses messages in both directions. In the end the cloud must have every
// number, stored or reported as lost, and the hub must never have more than 2,000 events in flight.
func TestEverythingArrives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := newWindowHub(0)
		h.batch = rapid.Uint64Range(1, 500).Draw(t, "batch")
		capacity := rapid.Uint64Range(1, 3000).Draw(t, "capacity")
		loss := rapid.IntRange(0, 40).Draw(t, "loss, percent")
		var stored uint64 // by the cloud, through this number
		lost := func() bool { return rapid.IntRange(0, 99).Draw(t, "network") < loss }
		roundTrip := func() {
			h.sent = nil
			h.send()
			for _, m := range h.sent {
				if lost() {
					continue
				}
				var first, last uint64
				if m == "hello" {
					stored = max(stored, h.oldest-1)
				} else if _, err := fmt.Sscanf(m, "%d-%d", &first, &last); err != nil {
					t.Fatal(err)
				} else if first <= stored+1 {
					stored = max(stored, last)
				}
				if stored > h.newest {
					t.Fatalf("stored through %d, want at most %d", stored, h.newest)
				}
				if !lost() {
					h.ack(stored)
				}
			}
			if h.w.sent > h.w.acked+2000 {
				t.Fatalf("%d events in flight, want at most 2000", h.w.sent-h.w.acked)
			}
		}
		for range rapid.IntRange(1, 30).Draw(t, "rounds") {
			h.add(rapid.Uint64Range(0, 1500).Draw(t, "events"))
			if held := h.newest + 1 - h.oldest; held > capacity {
				h.drop(h.newest + 1 - capacity)
			}
			roundTrip()
			h.after(time.Duration(rapid.IntRange(0, 6000).Draw(t, "ms")) * time.Millisecond)
		}
		loss = 0
		for range 10 + h.newest/2000 {
			roundTrip()
			h.after(resendInterval)
		}
		if stored != h.newest {
			t.Fatalf("stored through %d, want %d", stored, h.newest)
		}
	})
}
