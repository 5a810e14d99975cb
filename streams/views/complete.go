package views

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
)

const (
	// completeTimeout bounds how long a request to complete views is tried, so that it is answered
	// before taps ask again.
	completeTimeout = 3 * time.Second
	// completePoll is the pause between two looks whether the views are complete.
	completePoll = 5 * time.Millisecond
)

// serveComplete answers requests to complete the shard's views until ctx ends
// (streams.CompleteViews).
func (s *shard) serveComplete(ctx context.Context) error {
	requests := make(chan *nats.Msg, 64)
	sub, err := s.nc.ChanSubscribe(streams.CompleteViews, requests)
	if err != nil {
		return fmt.Errorf("views: %w", err)
	}
	defer streams.Unsubscribe(sub)
	for {
		select {
		case <-ctx.Done():
			return nil
		case request := <-requests:
			// What fails here is asked for again.
			if err := s.complete(ctx); err != nil {
				_ = request.Respond([]byte(err.Error()))
			} else {
				_ = request.Respond(nil)
			}
		}
	}
}

// complete returns once the shard's views have all records that the journal had before the call.
// The error is for the one who asked.
func (s *shard) complete(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	g := s.group
	if err := g.follower.Await(ctx, g.cfg.Journal.Position(g.number)); err != nil {
		return errors.New("the journal is not followed to its end; ask again")
	}
	ends := map[*view]uint64{}
	s.mu.Lock()
	for hub, v := range s.hubs {
		if v.run != nil || len(v.pending) > 0 || v.repairing {
			tip, _ := g.cfg.Journal.Tip(hub)
			ends[v] = tip.Seq
		}
	}
	s.mu.Unlock()
	g.hurried.Add(1)
	defer g.hurried.Add(-1)
	s.signal()
	for {
		behind := s.firstBefore(ends)
		if behind == nil {
			return nil
		}
		if !streams.Sleep(ctx, completePoll) {
			return fmt.Errorf("the log of %s is not written completely; ask again", behind.hub)
		}
	}
}

// firstBefore returns a view that ends before the sequence given or is being repaired, nil if there
// is none. It removes the views before it.
func (s *shard) firstBefore(ends map[*view]uint64) *view {
	s.mu.Lock()
	defer s.mu.Unlock()
	for v, end := range ends {
		if v.end < end || !v.current {
			return v
		}
		delete(ends, v)
	}
	return nil
}
