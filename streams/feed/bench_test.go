package feed

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

// benchLog appends n events of about 300 bytes and returns the cursors of all.
func benchLog(b *testing.B, f *fixture, hub domain.HubID, n int) []string {
	b.Helper()
	data := fmt.Sprintf(
		`{"key":"power","endpoint":0,"value":12.5,"pad":%q}`, strings.Repeat("x", 120),
	)
	var last uint64
	epoch, _ := f.epochOf(hub)
	for at := 0; at < n; at += 500 {
		records := make([]journal.Record, min(500, n-at))
		for i := range records {
			records[i] = record(hub, epoch.ID, at+i)
			records[i].Payload = fmt.Appendf(
				nil,
				`{"type":"channel.observed","hub_id":%q,"device_id":3,"time":"2026-01-02T03:04:05.123456Z","clock_trusted":true,"data":%s}`,
				hub, data,
			)
		}
		var err error
		if last, err = f.Append(b.Context(), hub, last, records); err != nil {
			b.Fatal(err)
		}
	}
	cursors := make([]string, 0, n)
	for after := ""; len(cursors) < n; {
		page := f.page(hub, after, 500)
		for _, e := range page.Events {
			cursors = append(cursors, e.Cursor)
		}
		after = page.Next
	}
	return cursors
}

// runParallel calls f b.N times from 8 goroutines.
func runParallel(b *testing.B, f func(*rand.Rand) error) {
	b.Helper()
	const readers = 8
	var next atomic.Int64
	var wg sync.WaitGroup
	for r := range readers {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(r)))
			for next.Add(1) <= int64(b.N) {
				if err := f(random); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pages/s")
}

const benchEvents = 50_000

// BenchmarkPage reads pages of 100 events: by direct gets without this package (bare), through Page
// with almost no cache (cold), from the newest 2,000 events, and after the log's end (empty).
func BenchmarkPage(b *testing.B) {
	broker := streamstest.New(b)
	f := startOn(b, broker.Connect(b), Config{})
	cursors := benchLog(b, f, hubA, benchEvents)
	cold := startOn(b, broker.Connect(b), Config{CacheBytes: 1})
	cached := startOn(b, broker.Connect(b), Config{})
	bare := broker.Connect(b).Shard(hubA)
	b.Run("bare", func(b *testing.B) {
		runParallel(b, func(r *rand.Rand) error {
			return bareGet(bare, 1+uint64(r.IntN(benchEvents-100)), 100)
		})
	})
	b.Run("cold", func(b *testing.B) {
		runParallel(b, func(r *rand.Rand) error {
			page, err := cold.Page(b.Context(), hubA, cursors[r.IntN(benchEvents-200)], 100)
			if err == nil && len(page.Events) != 100 {
				err = fmt.Errorf("got %d events, want 100", len(page.Events))
			}
			return err
		})
	})
	b.Run("newest", func(b *testing.B) {
		runParallel(b, func(r *rand.Rand) error {
			_, err := cached.Page(b.Context(), hubA, cursors[benchEvents-2000+r.IntN(2000)], 100)
			return err
		})
	})
	b.Run("empty", func(b *testing.B) {
		runParallel(b, func(r *rand.Rand) error {
			_, err := cached.Page(b.Context(), hubA, cursors[benchEvents-1], 100)
			return err
		})
	})
}

// bareGet is one batched direct get with nats.go alone.
func bareGet(nc *nats.Conn, from uint64, n int) error {
	answers := make(chan *nats.Msg, n+1)
	inbox := nc.NewInbox()
	sub, err := nc.ChanSubscribe(inbox, answers)
	if err != nil {
		return err
	}
	defer streams.Unsubscribe(sub)
	request := fmt.Appendf(nil, `{"seq":%d,"batch":%d}`, from, n)
	subject := jsapi.Prefix + ".DIRECT.GET." + streams.HubStream(hubA)
	if err := nc.PublishRequest(subject, inbox, request); err != nil {
		return err
	}
	for got := 0; ; got++ {
		select {
		case msg := <-answers:
			if msg.Header.Get("Status") == "204" {
				if got != n {
					return fmt.Errorf("got %d messages, want %d", got, n)
				}
				return nil
			}
		case <-time.After(time.Minute):
			return nats.ErrTimeout
		}
	}
}
