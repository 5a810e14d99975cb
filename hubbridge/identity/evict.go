package identity

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/streams"
	"hubcloud/streams/replicas"
)

const (
	// evictEvery is how often the Evictor looks whether a server is silent, and its first pause
	// between two searches while one is; mostEvictPause bounds that pause, which doubles.
	evictEvery     = 250 * time.Millisecond
	mostEvictPause = 30 * time.Second
	// evictTimeout bounds one search.
	evictTimeout = 20 * time.Second
)

// Evictor closes the connections of hubs to servers of the broker that do not reach a majority of
// their cluster: such a server stores nothing, and its hubs would wait for acks for as long as it is
// cut off. They connect again, to another server if something in front of the servers or their own
// list of addresses leads them there.
type Evictor struct {
	conns  *streams.Conns
	reach  *replicas.Reach
	logger *slog.Logger
}

// NewEvictor returns an Evictor. A nil logger is slog.Default().
func NewEvictor(conns *streams.Conns, reach *replicas.Reach, logger *slog.Logger) *Evictor {
	return &Evictor{conns: conns, reach: reach, logger: cmp.Or(logger, slog.Default())}
}

// Run searches for such servers while any server is silent, until ctx ends, and returns ctx's error.
func (e *Evictor) Run(ctx context.Context) error {
	for pause := evictEvery; ; {
		if !streams.Sleep(ctx, pause) {
			return ctx.Err()
		}
		if !e.reach.AnySilent() {
			pause = evictEvery
			continue
		}
		pause = min(2*pause, mostEvictPause)
		e.search(ctx)
	}
}

// search asks every server on a connection of its own: those that this process has lead elsewhere
// by now, or will soon.
func (e *Evictor) search(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, evictTimeout)
	defer cancel()
	var searches sync.WaitGroup
	defer searches.Wait()
	for _, url := range e.conns.Sys.Servers() {
		searches.Go(func() {
			closed, err := e.evict(ctx, url)
			if closed > 0 || err != nil {
				e.logger.Warn(
					"hubs sent away from a server without a majority", "server", url,
					"connections", closed, "error", err,
				)
			}
		})
	}
}

// evict closes the connections of all hubs to a server, unless that has a majority or does not
// answer, and returns their number.
func (e *Evictor) evict(ctx context.Context, url string) (closed int64, err error) {
	sys, err := e.conns.OpenSys(url)
	if err != nil {
		return 0, nil // it has ended, or only hubs reach it
	}
	defer sys.Close()
	if majority, err := replicas.HasMajority(ctx, sys); majority || err != nil {
		return 0, nil
	}
	var count atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for shard := range e.conns.Shards {
		group.Go(func() error {
			for more := true; more; { // a list has at most 1,024 connections
				more = false
				err := eachConnection(ctx, sys, streams.ShardAccount(shard), nil, func(c connection) {
					if c.Client != "" && c.close(ctx, sys) == nil {
						more = true
						count.Add(1)
					}
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	err = group.Wait()
	return count.Load(), err
}
