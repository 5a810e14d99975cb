package tap

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// discard is an Output that discards all records.
type discard struct{}

func (discard) Write(context.Context, []Record) error { return nil }
func (discard) Flush(context.Context) error           { return nil }
func (discard) Writers() int                          { return 1 }

// TestFeedLost checks that the tap finds missed events in the logs after messages of the feed were
// dropped, or after a reconnect.
func TestFeedLost(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(t *testing.T, nc *nats.Conn, sub *nats.Subscription){
		"dropped": func(t *testing.T, nc *nats.Conn, sub *nats.Subscription) {
			for sub.IsValid() {
				if dropped, err := sub.Dropped(); err != nil || dropped > 0 {
					return
				}
				// The answers fill the inbox, which is not read.
				if _, err := nc.Request("shard.00.STREAM.NAMES", nil, 5*time.Second); err != nil {
					t.Fatal(err)
				}
			}
		},
		"reconnected": func(t *testing.T, nc *nats.Conn, _ *nats.Subscription) {
			streamstest.Must(t, nc.ForceReconnect())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := streamstest.New(t)
			conns := broker.Connect(t)
			user := broker.Credentials().Users[streams.AccountTap]
			nc, err := Connect(
				t.Context(), ForUser("nats://in-process", streamstest.Shards, user),
				slog.New(slog.DiscardHandler), nats.InProcessServer(broker),
			)
			streamstest.Must(t, err)
			t.Cleanup(nc.Close)
			// In place of the feed: a subscription to the connection's inbox that does not keep up.
			stuck := make(chan struct{})
			t.Cleanup(func() { close(stuck) })
			sub, err := nc.Subscribe(streams.TapInbox(user.User)+".>", func(*nats.Msg) { <-stuck })
			if err == nil {
				err = sub.SetPendingLimits(1, -1)
			}
			streamstest.Must(t, err)
			tap, err := New(
				Config{
					Conn: nc, Shards: streamstest.Shards, Follow: true, Output: discard{},
					Logger: slog.New(slog.DiscardHandler),
				},
			)
			streamstest.Must(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			watching := make(chan error, 1)
			go func() { watching <- tap.watch(ctx, feeds{sub}) }()
			streamstest.Eventually(t, "the hubs are open", func() bool { return isOpen(tap.hubs) })
			js := streamstest.JetStream(t, conns.Shard(anyHub))
			if _, err := js.CreateStream(ctx, jetstream.StreamConfig{
				Name: streams.HubStream(anyHub), Subjects: []string{streams.LogFilter(anyHub)},
			}); err != nil {
				t.Fatal(err)
			}
			if _, err := js.Publish(ctx, streams.HubEventSubject(anyHub), []byte("x")); err != nil {
				t.Fatal(err)
			}
			lose(t, nc, sub)
			defer context.AfterFunc(ctx, tap.hubs.wakeAll)()
			late := time.AfterFunc(20*time.Second, cancel)
			defer late.Stop()
			if h := tap.hubs.take(ctx); h == nil || h.id != domain.HubID(anyHub) || h.known != 1 {
				t.Errorf("next hub: got %+v, want %s with 1 known event", h, anyHub)
			}
			cancel()
			if err := <-watching; err != nil {
				t.Error(err)
			}
		})
	}
}

func isOpen(hs *hubs) bool {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return hs.open
}
