package sendwindow

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// hub drives a window and records each message that it sends: "hello", or "FIRST-LAST" of events.
type hub struct {
	w              Window
	now            time.Time
	oldest, newest uint64
	batch          uint64
	sent           []string
}

func newHub(newest uint64) *hub {
	h := &hub{w: Window{Limit: 2000}, now: start, oldest: 1, newest: newest, batch: 500}
	h.w.Connect()
	return h
}

func (h *hub) send() *hub {
	for {
		step := h.w.Next(h.now, h.oldest, h.newest)
		switch {
		case step.Hello:
			h.w.HelloSent(h.now)
			h.sent = append(h.sent, "hello")
		case step.From > 0:
			last := step.From + min(step.Limit, h.batch) - 1
			h.w.EventsSent(last, h.now)
			h.sent = append(h.sent, fmt.Sprintf("%d-%d", step.From, last))
		default:
			return h
		}
	}
}

func (h *hub) ack(through uint64) *hub {
	h.w.Ack(through, h.now)
	h.oldest = max(h.oldest, through+1)
	h.newest = max(h.newest, through)
	return h
}

func (h *hub) after(d time.Duration) *hub {
	h.now = h.now.Add(d)
	return h
}

func (h *hub) drop(oldest uint64) *hub {
	h.oldest = oldest
	return h
}

// reconnect begins a new connection of a hub that still has the events from oldest on.
func (h *hub) reconnect(oldest uint64) *hub {
	h.w.Disconnect()
	h.w.Connect()
	return h.drop(oldest)
}

func (h *hub) add(n uint64) *hub {
	h.newest += n
	return h
}

// TestRules tries the rules of the package documentation, one per case.
func TestRules(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	for name, tc := range map[string]struct {
		h    *hub
		want []string
	}{
		"nothing is sent before the ack of the hello": {newHub(3).send(), []string{"hello"}},
		"hello is repeated every 5 s": {
			newHub(3).send().after(4999 * ms).send().after(ms).send().after(5 * time.Second).send(),
			[]string{"hello", "hello", "hello"},
		},
		"events start after the acknowledged number": {
			newHub(42).send().ack(40).send(), []string{"hello", "41-42"},
		},
		"nothing to send": {
			newHub(42).send().ack(42).send().after(time.Hour).send(), []string{"hello"},
		},
		"2,000 events are sent without an ack": {
			newHub(5000).send().ack(0).send(),
			[]string{"hello", "1-500", "501-1000", "1001-1500", "1501-2000"},
		},
		"an ack allows further events": {
			newHub(5000).send().ack(0).send().ack(500).send(),
			[]string{"hello", "1-500", "501-1000", "1001-1500", "1501-2000", "2001-2500"},
		},
		"events are sent again after 5 s without an ack": {
			newHub(2).send().ack(0).send().after(4999 * ms).send().after(ms).send(),
			[]string{"hello", "1-2", "1-2"},
		},
		"an ack restarts the 5 s": {
			newHub(1000).send().ack(0).send().after(4 * time.Second).ack(500).send().
				after(4 * time.Second).send(),
			[]string{"hello", "1-500", "501-1000"},
		},
		"a repeated ack shows a gap": {
			newHub(1000).send().ack(0).send().ack(0).send(),
			[]string{"hello", "1-500", "501-1000", "1-500", "501-1000"},
		},
		"acks of messages in flight are ignored after a gap": {
			newHub(1500).send().ack(0).send().ack(0).send().ack(0).ack(0).send(),
			[]string{"hello", "1-500", "501-1000", "1001-1500", "1-500", "501-1000", "1001-1500"},
		},
		"several messages are stored at once and acknowledged one by one": {
			newHub(1500).send().ack(0).send().ack(1000).ack(1000).send(),
			[]string{"hello", "1-500", "501-1000", "1001-1500"},
		},
		"a gap after an ack": {
			newHub(1500).send().ack(0).send().ack(500).ack(500).send(),
			[]string{"hello", "1-500", "501-1000", "1001-1500", "501-1000", "1001-1500"},
		},
		"a repeated ack with nothing in flight": {
			newHub(2).send().ack(2).ack(2).send(), []string{"hello"},
		},
		"dropped events are reported in a hello": {
			newHub(10).send().ack(2).drop(6).after(time.Second).send().ack(5).send(),
			[]string{"hello", "hello", "6-10"},
		},
		"hellos about dropped events are a second apart": {
			newHub(10).send().ack(2).drop(6).after(900 * ms).send().after(100 * ms).send(),
			[]string{"hello", "hello"},
		},
		"the cloud is ahead of the hub": {
			newHub(10).send().ack(20).add(1).send(), []string{"hello", "21-21"},
		},
		"an ack with a lower number is ignored": {
			newHub(10).send().ack(5).send().ack(4).after(4999 * ms).send().after(ms).send(),
			[]string{"hello", "6-10", "6-10"},
		},
		"the first ack of a new connection counts although it is lower": {
			newHub(10).send().ack(5).reconnect(3).send().ack(2).send(),
			[]string{"hello", "hello", "3-10"},
		},
		"one event at a time": {
			newHub(0).send().ack(0).add(1).send().ack(1).add(1).send(),
			[]string{"hello", "1-1", "2-2"},
		},
	} {
		if !slices.Equal(tc.h.sent, tc.want) {
			t.Errorf("%s: sent %v, want %v", name, tc.h.sent, tc.want)
		}
	}
}

func TestNotConnected(t *testing.T) {
	t.Parallel()
	h := newHub(5)
	h.w.Disconnect()
	if h.send().ack(3).send(); len(h.sent) > 0 || h.w.Connected() || h.w.HelloAcked() {
		t.Errorf("sent %v, want nothing", h.sent)
	}
}

func TestNoLimit(t *testing.T) {
	t.Parallel()
	h := newHub(5000)
	h.w.Limit = 0
	if h.send().ack(0).send(); len(h.sent) != 11 {
		t.Errorf("sent %v, want a hello and ten messages", h.sent)
	}
}

// TestEverythingArrives runs a hub of limited capacity against a cloud that keeps to the protocol,
// over a network that loses messages in both directions. In the end the cloud must have every
// number, stored or reported as lost, and the hub must never have more than 2,000 events in flight.
func TestEverythingArrives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := newHub(0)
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
			h.after(Interval)
		}
		if stored != h.newest {
			t.Fatalf("stored through %d, want %d", stored, h.newest)
		}
	})
}
