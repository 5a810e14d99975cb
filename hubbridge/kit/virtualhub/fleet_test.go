package virtualhub_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"hubcloud/hubbridge/identity"
	"hubcloud/hubbridge/kit/fleet"
	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
)

// startFleet runs a fleet of n hubs until the test ends.
func (c *cloud) startFleet(t *testing.T, n int, change func(*fleet.Config)) *fleet.Fleet {
	t.Helper()
	cfg := fleet.Config{
		EnrollURL:  c.http.URL,
		BackoffMin: 20 * time.Millisecond,
		BackoffMax: 500 * time.Millisecond,
	}
	for i := range n {
		cfg.Hubs = append(cfg.Hubs, c.register(t, fmt.Sprintf("hub-flee-0000-%04d", i)))
	}
	cfg.Logger = streamstest.Logger()
	change(&cfg)
	f, err := fleet.New(cfg)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-ended)
	})
	waitCtx, done := context.WithTimeout(t.Context(), timeout)
	defer done()
	if err := f.WaitConnected(waitCtx); err != nil {
		t.Fatalf("%+v: %v", f.Stats(), err)
	}
	return f
}

func TestFleet(t *testing.T) {
	t.Parallel()

	t.Run("rate", func(t *testing.T) {
		t.Parallel()
		c := startCloud(t)
		f := c.startFleet(t, 20, func(cfg *fleet.Config) { cfg.Rate, cfg.Batch = 20, 5 })
		begun := time.Now()
		streamstest.Eventually(t, "800 acks", func() bool { return f.Stats().Acked >= 800 })
		if took := time.Since(begun); took < time.Second {
			t.Errorf("400 events a second: 800 took %v", took)
		}
		s := f.Stats()
		if s.Hubs != 20 || s.Connected != 20 || s.Enrolled != 20 || s.Resent != 0 ||
			s.Disconnections != 0 ||
			s.AckP50 == 0 ||
			s.AckP99 < s.AckP50 {
			t.Errorf("unexpected Stats() = %+v", s)
		}
		f.ResetLatency()
	})

	t.Run("saturate", func(t *testing.T) {
		t.Parallel()
		c := startCloud(t)
		f := c.startFleet(
			t, 4,
			func(cfg *fleet.Config) { cfg.Saturate, cfg.Batch, cfg.Padding = true, 50, 100 },
		)
		streamstest.Eventually(t, "many acks", func() bool { return f.Stats().Acked >= 20000 })
		if s := f.Stats(); s.Emitted-s.Acked > 4*2*50+4*50 || s.Resent != 0 {
			t.Errorf("unexpected Stats() = %+v", s)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for id, r := range c.hubs {
			if len(r.faults) > 0 || len(r.stored) < 50 {
				t.Errorf("%s: %d stored, %v", id, len(r.stored), r.faults)
			}
		}
	})

	t.Run("idle, answers, comes back", func(t *testing.T) {
		t.Parallel()
		c := startCloud(t)
		f := c.startFleet(t, 2, func(cfg *fleet.Config) { cfg.KeepAlive = 2 * time.Second })
		begun := time.Now()
		last, err := f.Emit(
			1, virtualhub.Event{Type: "test.event"}, virtualhub.Event{Type: "test.event"},
		)
		if err != nil || last != 2 {
			t.Fatalf("%d, %v", last, err)
		}
		streamstest.Eventually(t, "acked", func() bool { return f.Stats().Acked == 2 })
		// only for its ID
		like, err := virtualhub.New(
			virtualhub.Config{EnrollURL: "-", Serial: "hub-flee-0000-0000", Secret: "-"},
		)
		must(t, err)
		defer func() { must(t, like.Close()) }()
		answer := result[channelAnswer](t, c.command(t, like, "c", 1, "switch", false))
		if answer.Channel.Status != "pending" {
			t.Errorf("answer %+v, want pending", answer)
		}
		streamstest.Eventually(
			t, "an observation stored",
			func() bool { return len(c.of(like, "channel.observed")) >= 1 },
		)
		// The broker cuts a hub that has not pinged for one and a half times its keep-alive.
		streamstest.Eventually(
			t, "two keep-alives pass", func() bool { return time.Since(begun) > 4*time.Second },
		)
		if s := f.Stats(); s.Disconnections != 0 || s.Requests != 1 {
			t.Errorf("unexpected Stats() = %+v", s)
		}
		_, err = identity.Disconnect(t.Context(), c.Conns, "hub-flee-0000-0000")
		must(t, err)
		// A busy machine may miss a keep-alive as well.
		streamstest.Eventually(t, "cut", func() bool { return f.Stats().Disconnections >= 1 })
		streamstest.Eventually(t, "back", func() bool { return f.Stats().Connected == 2 })
		if _, err := f.Emit(7, virtualhub.Event{}); err == nil {
			t.Error("Emit of a hub that the fleet does not have returned no error")
		}
	})
}

func TestFleetConfig(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]fleet.Config{
		"rate":     {Rate: -1},
		"both":     {Rate: 1, Saturate: true},
		"batch":    {Batch: 501},
		"depth":    {Batch: 500, Depth: 5},
		"padding":  {Padding: 1 << 20},
		"parallel": {Parallel: -1},
		"hub":      {Hubs: []fleet.Credentials{{Serial: "x"}}},
		"devices": {
			Hubs:    []fleet.Credentials{{Serial: "HUB-7K2M-Q4XD-93TA", Secret: "s"}},
			Devices: []virtualhub.DeviceSpec{{}},
		},
	} {
		cfg.EnrollURL = "http://127.0.0.1:1"
		if _, err := fleet.New(cfg); err == nil {
			t.Errorf("%s: New returned no error", name)
		}
	}
}
