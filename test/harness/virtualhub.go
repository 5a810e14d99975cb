package harness

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"hubcloud/hubbridge/kit/hub"
	"hubcloud/hubbridge/kit/virtualhub"
)

// Readings returns n events of an electricity meter, device 1, with the values n to 1.
func Readings(n int) []virtualhub.Event {
	events := make([]virtualhub.Event, n)
	for i := range events {
		events[i] = hub.Observed(1, "power", 0, n-i)
	}
	return events
}

// VirtualHub runs a virtual hub that belongs to the tenant until the test ends, and waits until it
// is connected. The hub reports nothing by itself and reconnects quickly. Its messages, and those
// of the cloud to it, are validated unless cfg.OnMessage is set.
func (c *Target) VirtualHub(tenant *Tenant, cfg virtualhub.Config) *virtualhub.Hub {
	c.t.Helper()
	identity := c.Hub()
	cfg.EnrollURL, cfg.Quiet = c.Public, true
	cfg.Serial, cfg.Secret = identity.Serial, identity.Secret
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.OnMessage == nil {
		cfg.OnMessage = CheckedMessages(c.t)
	}
	if cfg.BackoffMin == 0 {
		cfg.BackoffMin, cfg.BackoffMax = 200*time.Millisecond, time.Second
	}
	hub, err := virtualhub.New(cfg)
	Must(c.t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- hub.Run(ctx) }()
	c.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			c.t.Errorf("hub %s: %v", identity.HubID, err)
		}
	})
	Connected(c.t, hub)
	tenant.For(c.t).Add(identity.Serial)
	return hub
}

// Connected waits until a virtual hub is connected and its hello acknowledged.
func Connected(t testing.TB, hub *virtualhub.Hub) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := hub.WaitConnected(ctx); err != nil {
		t.Fatalf("hub %s: not connected within %s", hub.ID(), patience)
	}
}

// Stored waits until the cloud has acknowledged all events of a virtual hub.
func Stored(t testing.TB, hub *virtualhub.Hub) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := hub.WaitAcked(ctx, hub.Status().Newest); err != nil {
		t.Fatalf(
			"hub %s: got %+v after %s, want all events acknowledged", hub.ID(), hub.Status(),
			patience,
		)
	}
}
