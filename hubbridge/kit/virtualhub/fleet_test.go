package virtualhub_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
)

// startFleet runs a fleet of n hubs until the test ends.
func (c *cloud) startFleet(t *testing.T, n int, change func(*virtualhub.FleetConfig)) *virtualhub.Fleet {
	t.Helper()
	cfg := virtualhub.FleetConfig{EnrollURL: c.http.URL}
	for i := range n {
		cfg.Hubs = append(cfg.Hubs, c.register(t, fmt.Sprintf("hub-flee-0000-%04d", i)))
	}
	cfg.Logger = streamstest.Logger()
	change(&cfg)
	f, err := virtualhub.NewFleet(cfg)
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
		f := c.startFleet(t, 20, func(cfg *virtualhub.FleetConfig) { cfg.Rate, cfg.Batch = 20, 5 })
		begun := time.Now()
		streamstest.Eventually(t, "800 acks", func() bool { return f.Stats().Acked >= 800 })
		if took := time.Since(begun); took < time.Second {
			t.Errorf("400 events a second: 800 took %v", took)
		}
		s := f.Stats()
		if s.Hubs != 20 || s.Connected != 20 || s.Enrolled != 20 || s.Resent != 0 || s.Disconnections != 0 ||
			s.AckP50 == 0 || s.AckP99 < s.AckP50 {
			t.Errorf("unexpected Stats() = %+v", s)
		}
	})

	t.Run("saturate", func(t *testing.T) {
		t.Parallel()
		c := startCloud(t)
		f := c.startFleet(t, 4, func(cfg *virtualhub.FleetConfig) { cfg.Batch = 50 })
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
}

func TestFleetConfig(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]virtualhub.FleetConfig{
		"rate":  {Rate: -1},
		"batch": {Batch: 501},
		"hub":   {Hubs: []virtualhub.Credentials{{Serial: "x"}}},
	} {
		cfg.EnrollURL = "http://127.0.0.1:1"
		if _, err := virtualhub.NewFleet(cfg); err == nil {
			t.Errorf("%s: New returned no error", name)
		}
	}
}
