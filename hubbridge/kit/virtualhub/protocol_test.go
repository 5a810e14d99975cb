package virtualhub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hubcloud/hubbridge/kit/hub"
	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
)

func emit(t testing.TB, h *virtualhub.Hub, n int) (last uint64) {
	t.Helper()
	events := make([]virtualhub.Event, n)
	for i := range events {
		events[i] = virtualhub.Event{Type: "test.event", Data: map[string]int{"n": i}}
	}
	last, err := h.Emit(events...)
	must(t, err)
	return last
}

// inOrder fails the test unless the cloud has exactly the numbers from first to last, in order.
func inOrder(t testing.TB, c *cloud, h *virtualhub.Hub, first, last uint64) {
	t.Helper()
	for _, e := range c.of(h) {
		if e.Seq != first {
			t.Fatalf("the cloud has number %d, want %d", e.Seq, first)
		}
		first++
	}
	if first != last+1 {
		t.Fatalf("the cloud has numbers through %d, want %d", first-1, last)
	}
}

// TestProtocol tries what the check of hubs does not see: its test runs a virtual hub through all
// lines (check.TestRightHub).
func TestProtocol(t *testing.T) {
	t.Parallel()
	c := startCloud(t)

	t.Run("hello, events, acks", func(t *testing.T) {
		t.Parallel()
		h := c.hub(t, "hub-link-0000-0001", nil)
		last := emit(t, h, 3)
		c.acked(t, h, last)
		inOrder(t, c, h, 1, last)
		e := c.of(h)[0]
		if at, err := time.Parse("2006-01-02T15:04:05.000000Z", e.Time); err != nil || time.Since(at) > time.Minute ||
			e.ClockTrusted == nil || !*e.ClockTrusted || e.DeviceID != nil {
			t.Errorf("event %+v", e)
		}
		s := h.Status()
		if s.Oldest != last+1 || s.Newest != last || s.Acked != last || !s.Connected {
			t.Errorf("Status() = %+v, want everything acknowledged and dropped", s)
		}
	})

	t.Run("dropped events are reported in a hello", func(t *testing.T) {
		t.Parallel()
		h := c.hub(t, "hub-link-0000-0006", func(cfg *virtualhub.Config) { cfg.Capacity = 10 })
		c.acked(t, h, emit(t, h, 4))
		h.Offline(true)
		streamstest.Eventually(t, "offline", func() bool { return !h.Connected() })
		last := emit(t, h, 30)
		h.Offline(false)
		c.acked(t, h, last)
		c.with(h, func(r *remote) {
			if want := [][2]uint64{{5, 24}}; !slices.Equal(r.skipped, want) {
				t.Errorf("skipped %v, want %v", r.skipped, want)
			}
		})
	})

	t.Run("events are lost while connected", func(t *testing.T) {
		t.Parallel()
		h := c.hub(t, "hub-link-0000-0007", nil)
		c.acked(t, h, emit(t, h, 4))
		from, to, err := h.LoseEvents(7)
		if err != nil || from != 5 || to != 11 {
			t.Fatalf("LoseEvents(7) = %d, %d, %v, want 5, 11", from, to, err)
		}
		c.acked(t, h, emit(t, h, 1))
		c.with(h, func(r *remote) {
			if want := [][2]uint64{{5, 11}}; !slices.Equal(r.skipped, want) || r.through != 12 {
				t.Errorf("skipped %v, through %d, want %v, 12", r.skipped, r.through, want)
			}
		})
	})

	t.Run("nothing is lost by cut connections and restarts", func(t *testing.T) {
		t.Parallel()
		h := c.hub(t, "hub-link-0000-0009", nil)
		var last uint64
		for i := range 10 {
			last = emit(t, h, 100)
			if i%2 == 0 {
				h.CutConnection()
			} else {
				h.Restart()
			}
			streamstest.Eventually(
				t, "disconnected or acknowledged",
				func() bool { return !h.Connected() || h.Status().Acked == last },
			)
			c.connected(t, h)
		}
		c.acked(t, h, last)
		inOrder(t, c, h, 1, last)
	})

	t.Run("a half-open connection is noticed by its keep-alive", func(t *testing.T) {
		t.Parallel()
		credentials, network := c.register(t, "hub-link-0000-0010"), &freezing{}
		h, err := hub.New(hub.Config{
			EnrollURL: c.http.URL, Serial: credentials.Serial, Secret: credentials.Secret,
			Handler: struct{ hub.Handler }{}, KeepAlive: time.Second, Dial: network.dial,
			BackoffMin: 20 * time.Millisecond, Logger: streamstest.Logger(),
		})
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- h.Run(ctx) }()
		must(t, h.WaitConnected(ctx))
		defer network.freeze()() // closed at the end: the broker must not notice
		last, err := h.Emit(readings(3)...)
		must(t, err)
		if !h.Status().Connected {
			t.Error("the hub noticed at once, want it to notice by its keep-alive")
		}
		must(t, h.WaitAcked(ctx, last))
		cancel()
		must(t, <-ended)
	})

	t.Run("factory reset", func(t *testing.T) {
		t.Parallel()
		h := c.hub(t, "hub-link-0000-0011", func(cfg *virtualhub.Config) { cfg.Dir = t.TempDir() })
		c.acked(t, h, emit(t, h, 5))
		must(t, h.FactoryReset())
		last := emit(t, h, 2)
		if last != 2 {
			t.Errorf("last number after the reset = %d, want 2", last)
		}
		c.acked(t, h, 2)
		c.with(h, func(r *remote) {
			if len(r.logs) != 2 || r.logs[0] == r.logs[1] || r.through != 2 {
				t.Errorf("logs %v, through %d", r.logs, r.through)
			}
		})
	})

	t.Run("malformed events can be emitted", func(t *testing.T) {
		t.Parallel()
		h := c.hub(t, "hub-link-0000-0012", nil)
		c.with(h, func(r *remote) { r.silent, r.malformed = true, true })
		emit(t, h, 1)
		last, err := h.EmitMalformed()
		must(t, err)
		if _, err := h.Emit(virtualhub.Event{Raw: json.RawMessage(`[1]`)}); err == nil {
			t.Error("Emit() of an array returned no error")
		}
		if _, err := h.Emit(virtualhub.Event{
			Raw: json.RawMessage(`{"a":"` + strings.Repeat("x", 300<<10) + `"}`),
		}); err == nil {
			t.Error("Emit() of an event larger than a message returned no error")
		}
		if last != uint64(1+len(virtualhub.MalformedEvents())) {
			t.Errorf("EmitMalformed() = %d, want %d", last, 1+len(virtualhub.MalformedEvents()))
		}
	})
}

// TestEnrolsUntilItSucceeds: the check of hubs tries the other reasons to enrol (check.TestRightHub), and
// hub.TestSchedule when a hub does.
func TestEnrolsUntilItSucceeds(t *testing.T) {
	t.Parallel()
	c := startCloud(t)
	c.reject.Store(503)
	credentials := c.register(t, "hub-enro-0000-0001")
	h, _ := c.start(t, virtualhub.Config{Config: hub.Config{
		EnrollURL: c.http.URL + "/", Serial: strings.ToLower(strings.ReplaceAll(credentials.Serial, "-", "")),
		Secret: credentials.Secret, BackoffMin: 10 * time.Millisecond,
	}})
	streamstest.Eventually(t, "asks", func() bool { return c.enrolments.Load() > 0 })
	c.reject.Store(0)
	c.connected(t, h)
}

func TestConfig(t *testing.T) {
	t.Parallel()
	good := virtualhub.Config{
		Config: hub.Config{
			EnrollURL: "http://127.0.0.1:1", Serial: "HUB-7K2M-Q4XD-93TA", Secret: "s",
		},
	}
	for name, change := range map[string]func(*virtualhub.Config){
		"serial":     func(c *virtualhub.Config) { c.Serial = "HUB-7K2M" },
		"secret":     func(c *virtualhub.Config) { c.Secret = "" },
		"address":    func(c *virtualhub.Config) { c.EnrollURL = "" },
		"batch":      func(c *virtualhub.Config) { c.Batch = 501 },
		"keep-alive": func(c *virtualhub.Config) { c.KeepAlive = 61 * time.Second },
		"devices": func(c *virtualhub.Config) {
			c.Devices = []virtualhub.DeviceSpec{
				{Kind: "toaster"},
			}
		},
	} {
		cfg := good
		change(&cfg)
		if h, err := virtualhub.New(cfg); err == nil {
			t.Errorf("%s: New returned no error", name)
			_ = h.Close()
		}
	}
	h, err := virtualhub.New(good)
	must(t, err)
	if h.ID() != "hub-7k2m-q4xd-93ta" || fmt.Sprint(h.DeviceIDs()) != "[1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17]" {
		t.Errorf("hub %s has devices %v, want the 17 of the demo", h.ID(), h.DeviceIDs())
	}
	must(t, h.Close())
}
