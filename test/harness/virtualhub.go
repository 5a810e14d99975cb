package harness

import (
	"context"
	"testing"
	"time"

	"hubcloud/hubbridge/virtualhub"
)

// VirtualHub runs a hub in software that belongs to the tenant, until the test ends, and waits
// until it is connected. It reports nothing by itself, and comes back soon when it has lost its
// connection.
func (c *Target) VirtualHub(tenant *Tenant, cfg virtualhub.Config) *virtualhub.Hub {
	c.t.Helper()
	made := c.Inventory(1)[0]
	cfg.EnrollURL, cfg.Serial, cfg.Secret, cfg.Quiet = c.Public, made.Serial, made.Secret, true
	if cfg.BackoffMin == 0 {
		cfg.BackoffMin, cfg.BackoffMax = 200*time.Millisecond, time.Second
	}
	hub, err := virtualhub.New(cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- hub.Run(ctx) }()
	c.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			c.t.Errorf("hub %s: %v", made.HubID, err)
		}
	})
	Connected(c.t, hub)
	tenant.For(c.t).Add(made.Serial)
	return hub
}

// Connected waits until a virtual hub is connected and heard.
func Connected(t testing.TB, hub *virtualhub.Hub) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := hub.WaitConnected(ctx); err != nil {
		t.Fatalf("hub %s: not connected after 30 s", hub.ID())
	}
}

// Stored waits until the cloud has everything that a virtual hub has to tell.
func Stored(t testing.TB, hub *virtualhub.Hub) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := hub.WaitAcked(ctx, hub.Status().Newest); err != nil {
		t.Fatalf("hub %s: after 30 s %+v", hub.ID(), hub.Status())
	}
}
