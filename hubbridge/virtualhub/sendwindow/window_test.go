package sendwindow

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// hub drives a window as a hub does, and writes down what it sends: "hello", or the numbers of a
// message.
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

func (h *hub) add(n uint64) *hub {
	h.newest += n
	return h
}

// TestRules holds the hub's side of the hub link's rules, one story a case.
func TestRules(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	for name, tc := range map[string]struct {
		h    *hub
		want []string
	}{
		"hello, and nothing before its ack": {newHub(3).send(), []string{"hello"}},
		"hello again every 5 s": {
			newHub(3).send().after(4999 * ms).send().after(ms).send().after(5 * time.Second).send(),
			[]string{"hello", "hello", "hello"},
		},
		"from through + 1 on": {
			newHub(42).send().ack(40).send(), []string{"hello", "41-42"},
		},
		"nothing to send": {
			newHub(42).send().ack(42).send().after(time.Hour).send(), []string{"hello"},
		},
		"without waiting, up to 2,000": {
			newHub(5000).send().ack(0).send(),
			[]string{"hello", "1-500", "501-1000", "1001-1500", "1501-2000"},
		},
		"on with each ack": {
			newHub(5000).send().ack(0).send().ack(500).send(),
			[]string{"hello", "1-500", "501-1000", "1001-1500", "1501-2000", "2001-2500"},
		},
		"again after 5 s without an ack": {
			newHub(2).send().ack(0).send().after(4999 * ms).send().after(ms).send(),
			[]string{"hello", "1-2", "1-2"},
		},
		"an ack puts that off": {
			newHub(1000).send().ack(0).send().after(4 * time.Second).ack(500).send().after(4 * time.Second).send(),
			[]string{"hello", "1-500", "501-1000"},
		},
		"a repeat of the last ack is a gap": {
			newHub(1000).send().ack(0).send().ack(0).send(),
			[]string{"hello", "1-500", "501-1000", "1-500", "501-1000"},
		},
		"the repeats that follow are known": {
			newHub(1500).send().ack(0).send().ack(0).send().ack(0).ack(0).send(),
			[]string{"hello", "1-500", "501-1000", "1001-1500", "1-500", "501-1000", "1001-1500"},
		},
		"several messages with one ack for each": {
			newHub(1500).send().ack(0).send().ack(1000).ack(1000).send(),
			[]string{"hello", "1-500", "501-1000", "1001-1500"},
		},
		"a gap after an ack": {
			newHub(1500).send().ack(0).send().ack(500).ack(500).send(),
			[]string{"hello", "1-500", "501-1000", "1001-1500", "501-1000", "1001-1500"},
		},
		"a repeat with nothing out is nothing": {
			newHub(2).send().ack(2).ack(2).send(), []string{"hello"},
		},
		"dropped events: hello, then the rest": {
			newHub(10).send().ack(2).drop(6).after(time.Second).send().ack(5).send(),
			[]string{"hello", "hello", "6-10"},
		},
		"hellos for drops are a second apart": {
			newHub(10).send().ack(2).drop(6).after(900 * ms).send().after(100 * ms).send(),
			[]string{"hello", "hello"},
		},
		"the cloud is ahead": {
			newHub(10).send().ack(20).add(1).send(), []string{"hello", "21-21"},
		},
		"the cloud fell behind what is held": {
			newHub(10).send().ack(10).ack(4).after(time.Second).send(), []string{"hello", "hello"},
		},
		"an event at a time": {
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
		t.Errorf("sent %v", h.sent)
	}
}

func TestHeedless(t *testing.T) {
	t.Parallel()
	h := newHub(5000)
	h.w.Limit = 0
	if h.send().ack(0).send(); len(h.sent) != 11 {
		t.Errorf("sent %v", h.sent)
	}
}

// TestEverythingArrives plays a hub against a cloud that keeps to the hub link, over a line that
// loses messages both ways and a hub that has little room: whatever happens, the cloud ends up with
// every number once, stored or known to be lost, in order, and the hub never has more than 2,000
// out.
func TestEverythingArrives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := newHub(0)
		h.batch = rapid.Uint64Range(1, 500).Draw(t, "batch")
		room := rapid.Uint64Range(1, 3000).Draw(t, "room")
		loss := rapid.IntRange(0, 40).Draw(t, "loss, percent")
		var stored uint64 // the cloud's through
		lost := func() bool { return rapid.IntRange(0, 99).Draw(t, "line") < loss }
		settle := func() {
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
					t.Fatalf("the cloud has %d of %d", stored, h.newest)
				}
				if !lost() {
					h.ack(stored)
				}
			}
			if h.w.sent > h.w.through+2000 {
				t.Fatalf("%d out", h.w.sent-h.w.through)
			}
		}
		for range rapid.IntRange(1, 30).Draw(t, "rounds") {
			h.add(rapid.Uint64Range(0, 1500).Draw(t, "events"))
			if held := h.newest + 1 - h.oldest; held > room {
				h.drop(h.newest + 1 - room)
			}
			settle()
			h.after(time.Duration(rapid.IntRange(0, 6000).Draw(t, "ms")) * time.Millisecond)
		}
		loss = 0
		for range 10 + h.newest/2000 {
			settle()
			h.after(Interval)
		}
		if stored != h.newest {
			t.Fatalf("the cloud has %d of %d", stored, h.newest)
		}
	})
}
