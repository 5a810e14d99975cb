package consumer

import (
	"context"
	"errors"
	"testing"

	"hubcloud/httpapi/client"
	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/test/harness"
)

// follow collects a hub's events in a goroutine until it has enough or the sequence ends.
type follow struct {
	events []client.Event
	gaps   int
	err    error
	ended  chan struct{}
}

// following starts to collect the events after a cursor, until the scene with the number last.
func following(
	ctx context.Context, c *client.Client, hub, after string, last int,
	options ...client.EventsOption,
) *follow {
	f := &follow{ended: make(chan struct{})}
	go func() {
		defer close(f.ended)
		for event, err := range c.Events(ctx, hub, after, options...) {
			switch {
			case client.IsGap(err):
				f.gaps++
			case err != nil:
				f.err = err
				return
			}
			f.events = append(f.events, event)
			var data struct{ Value client.Scene }
			if event.Type == client.EventChannelObserved && event.Decode(&data) == nil &&
				data.Value.Scene == last {
				return
			}
		}
	}()
	return f
}

// emitScenes makes a hub send scene events numbered from first to last.
func emitScenes(t *testing.T, hub *virtualhub.Hub, first, last int) {
	t.Helper()
	for n := first; n <= last; n++ {
		if _, err := hub.Emit(virtualhub.Event{
			Type: "channel.observed", DeviceID: 1,
			Data: map[string]any{
				"key": "scene", "endpoint": 0,
				"value": map[string]any{"scene": n, "attribute": "pressed"},
			},
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// gapsAndResets checks that lost events are reported as a gap, and a hub reset as the need to
// resync, after which a program can continue.
func gapsAndResets(t *testing.T, target *harness.Target) {
	tenant := target.Tenant("Resync")
	c, ctx := clientOf(t, tenant, client.Retry{}), soon(t)
	hub := target.VirtualHub(tenant, virtualhub.Config{})
	position := check[string](t)(c.Position(ctx, hub.ID()))
	reader := following(ctx, c, hub.ID(), position, 2)
	emitScenes(t, hub, 1, 1)
	harness.Stored(t, hub)
	if _, _, err := hub.LoseEvents(7); err != nil {
		t.Fatal(err)
	}
	emitScenes(t, hub, 2, 2)
	<-reader.ended
	if reader.err != nil || reader.gaps != 1 {
		t.Fatalf("got %d gaps, error %v; want 1, none", reader.gaps, reader.err)
	}
	kept := reader.events[len(reader.events)-1].Cursor

	reader = following(ctx, c, hub.ID(), kept, 9)
	if err := hub.FactoryReset(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-reader.ended:
	case <-ctx.Done():
	}
	if !errors.Is(reader.err, client.ErrResync) || !errors.Is(reader.err, client.ErrCursorExpired) {
		t.Fatalf("after a reset: got %v, want ErrResync", reader.err)
	}
	harness.Connected(t, hub)
	snapshot := check[client.Snapshot](t)(c.Resync(ctx, hub.ID()))
	if len(snapshot.Devices) != len(hub.DeviceIDs()) || snapshot.Cursor == "" {
		t.Errorf(
			"resync: got %d devices, cursor %q; want %d and a cursor", len(snapshot.Devices),
			snapshot.Cursor, len(hub.DeviceIDs()),
		)
	}
	reader = following(ctx, c, hub.ID(), snapshot.Cursor, 3)
	emitScenes(t, hub, 3, 3)
	<-reader.ended
	if reader.err != nil || len(reader.events) == 0 {
		t.Errorf("after the resync: got %+v, %v", reader.events, reader.err)
	}
}
