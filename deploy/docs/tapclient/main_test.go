package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/feed"
	"hubcloud/streams/journal"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/tap"
	"hubcloud/streams/views/viewstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }

// TestFollow runs the example against a broker that restarts, and checks that the example prints
// every event once and in order.
func TestFollow(t *testing.T) {
	t.Parallel()
	const hub, before, after = domain.HubID("hub-aaaa-aaaa-0001"), 1200, 300
	broker := streamstest.New(t)
	conns := broker.Connect(t)
	journals, _ := viewstest.Open(t, conns, time.Hour)
	logs, err := feed.New(conns, feed.Config{
		Journal:   journals,
		Retention: time.Hour, Logger: slog.New(slog.DiscardHandler),
		Epoch: func(domain.HubID) (domain.Epoch, bool) { return domain.Epoch{}, false },
	})
	streamstest.Must(t, err)
	t.Cleanup(logs.Close)
	var last uint64
	store := func(from, to int) {
		t.Helper()
		for n := from; n <= to; n += 100 {
			var records []journal.Record
			for i := n; i < n+100; i++ {
				payload := fmt.Appendf(
					nil,
					`{"type":"channel.observed","hub_id":%q,"device_id":1,"time":"2026-01-02T03:04:05Z","clock_trusted":true,"data":{"n":%d}}`,
					hub, i,
				)
				records = append(records, journal.Record{
					Kind: journal.KindHubEvent, Payload: payload, EpochID: domain.NewEpochID(0xa),
				})
			}
			if last, err = logs.Append(context.Background(), hub, last, records); err != nil {
				t.Fatal(err)
			}
		}
	}
	store(1, before)
	if _, err := logs.AppendCommand(t.Context(), hub, []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := logs.AppendState(
		t.Context(), hub, domain.NewEpochID(0xa), "", []byte("a state"),
	); err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(t.TempDir(), "tap.json")
	text, err := json.Marshal(
		tap.ForUser(
			"nats://in-process", streamstest.Shards, broker.Credentials().Users[streams.AccountTap],
		),
	)
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	streamstest.Must(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	reader, writer := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := follow(
			ctx, path, string(hub), writer, nats.InProcessServer(broker),
			nats.ReconnectWait(100*time.Millisecond),
		)
		writer.CloseWithError(err)
		done <- err
	}()
	lines := bufio.NewScanner(reader)
	for n := 1; n <= before+after; n++ {
		if n == before+1 {
			broker.Stop()
			broker.Start(t)
			store(before+1, before+after)
		}
		if !lines.Scan() {
			t.Fatalf("output ends before event %d: %v", n, lines.Err())
		}
		var event struct{ Data struct{ N int } }
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil || event.Data.N != n {
			t.Fatalf("event %d: got %s, error %v", n, lines.Bytes(), err)
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("follow: got %v, want context.Canceled", err)
	}
}
