package ingest_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/hubbridge/codec"
	"hubcloud/streams"
	"hubcloud/streams/journal"
)

const (
	benchHubs  = 64
	benchBatch = 50
)

// BenchmarkIngest stores events of 64 hubs in messages of 50, each hub with up to 2,000
// unacknowledged events, and for comparison appends the same events to the same logs directly. One
// operation is one message.
func BenchmarkIngest(b *testing.B) {
	b.Run("bridge", func(b *testing.B) {
		hubs := benchFleet(b)
		for _, h := range hubs {
			h.hello("a", 1, 0)
			h.wantAck("a", 0)
		}
		b.ResetTimer()
		inParallel(b, hubs, func(h *hub, messages int) {
			window := make(chan struct{}, 2000/benchBatch)
			done := make(chan struct{})
			go func() {
				defer close(done)
				for range messages {
					h.ack()
					<-window
				}
			}()
			for n := range messages {
				window <- struct{}{}
				_ = h.nc.PublishMsg(
					&nats.Msg{Subject: streams.EventsSubject(h.id), Data: benchMessage(n)},
				)
			}
			<-done
		})
	})
	b.Run("append", func(b *testing.B) {
		hubs := benchFleet(b)
		b.ResetTimer()
		inParallel(b, hubs, func(h *hub, messages int) {
			access, _ := h.r.Hub(h.id)
			var last uint64
			var decoder codec.EventsDecoder
			for n := range messages {
				batch, err := decoder.Decode(h.id, benchMessage(n))
				if err != nil {
					b.Error(err)
					return
				}
				records := make([]journal.Record, benchBatch)
				for i := range records {
					records[i] = journal.Record{Kind: journal.KindHubEvent,
						Payload: batch.Events[i].Payload,
						EpochID: access.Epoch.ID,
						OwnLog:  "a",
						Through: batch.First + uint64(i),
					}
				}
				if last, err = h.r.HubLogs.Append(b.Context(), h.id, last, records); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}

// benchFleet returns hubs whose shards run.
func benchFleet(b *testing.B) []*hub {
	b.Helper()
	r := newTestIngest(b, time.Hour)
	hubs := make([]*hub, benchHubs)
	for i := range hubs {
		hubs[i] = adopted(r)
	}
	seen := map[int]bool{}
	for _, h := range hubs {
		if shard := streams.ShardOf(h.id, len(r.Conns.Shards)); !seen[shard] {
			seen[shard] = true
			r.shard(h.id)
		}
	}
	return hubs
}

// inParallel calls send for all hubs at once, and reports the events per second.
func inParallel(b *testing.B, hubs []*hub, send func(h *hub, messages int)) {
	b.Helper()
	var all sync.WaitGroup
	each := b.N/len(hubs) + 1
	for _, h := range hubs {
		all.Go(func() { send(h, each) })
	}
	all.Wait()
	b.ReportMetric(float64(each*len(hubs)*benchBatch)/b.Elapsed().Seconds(), "events/s")
}

// benchMessage returns the events message number n.
func benchMessage(n int) []byte {
	events := make([]string, benchBatch)
	for i := range events {
		events[i] = event(uint64(n*benchBatch + i + 1))
	}
	return []byte(fmt.Sprintf(`{"log":"a","events":[%s]}`, strings.Join(events, ",")))
}
