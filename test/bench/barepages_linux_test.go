package bench

import (
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/streams"
)

// pagesCommand makes the bare broker's process read every page of the hubs' logs.
type pagesCommand struct {
	Hubs    []string
	Readers int
	Events  int
}

// pages returns the pages read per second.
func (b *bareBroker) pages(c pagesCommand) (float64, error) {
	var next atomic.Int64
	var pages atomic.Int64
	var group errgroup.Group
	began := time.Now()
	for range c.Readers {
		group.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(c.Hubs) {
					return nil
				}
				n, err := b.readLog(c.Hubs[i], c.Events)
				pages.Add(int64(n))
				if err != nil {
					return fmt.Errorf("pages of %s: %w", c.Hubs[i], err)
				}
			}
		})
	}
	err := group.Wait()
	return float64(pages.Load()) / time.Since(began).Seconds(), err
}

// readLog reads a stream in batches of a page by direct get.
func (b *bareBroker) readLog(hub string, events int) (pages int, err error) {
	nc := b.shard(hub)
	inbox := nc.NewInbox()
	answers := make(chan *nats.Msg, 2*pageEvents)
	sub, err := nc.ChanSubscribe(inbox, answers)
	if err != nil {
		return 0, err
	}
	defer sub.Unsubscribe()
	subject := "$JS.API.DIRECT.GET." + streams.HubStream(domain.HubID(hub))
	seq, got := uint64(1), 0
	for got < events {
		if err := nc.PublishRequest(
			subject, inbox, fmt.Appendf(nil, `{"seq":%d,"batch":%d}`, seq, pageEvents),
		); err != nil {
			return pages, err
		}
		for {
			m := <-answers
			status := m.Header.Get("Status")
			if status == strconv.Itoa(http.StatusNoContent) {
				break
			}
			if status != "" {
				return pages, fmt.Errorf("status %s from %d on", status, seq)
			}
			last, err := strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64)
			if err != nil {
				return pages, err
			}
			seq = last + 1
			got++
		}
		pages++
	}
	return pages, nil
}
