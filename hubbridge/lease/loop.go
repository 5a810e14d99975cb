package lease

import (
	"context"
	"sync"
	"time"

	"hubcloud/streams/jsapi"
)

const (
	// retryEvery is how often the loop looks for silent keys, and tries again to acquire missing
	// groups without an update.
	retryEvery = 250 * time.Millisecond
	// logEvery is how often the loop logs why it lacks groups that it has lacked for logAfter; a
	// handover takes less.
	logEvery = 10 * time.Second
	logAfter = 5 * time.Second
)

// loop is the state of one Keeper.Run. Only Run's goroutine uses it.
type loop struct {
	*Keeper
	serve func(ctx context.Context, group int, term *Term) error
	// fenced reports that serve goes on while no other replica is known to have a lease.
	fenced bool
	// keys is the known content of the bucket.
	keys map[string]knownKey
	// tenures has the groups that are held or being acquired; ended receives their ends.
	tenures map[int]*tenure
	ended   chan tenureEnd

	// reads receives the result of a read of the bucket, and reading reports that a read is
	// running. readAt is when the last read began. stale reports that keys is known to be wrong, so
	// that the next read is due at once.
	reads   chan bucketRead
	reading bool
	readAt  time.Time
	stale   bool
	// missing has the groups of the share that this replica does not hold.
	missing map[int]*missing
}

// run runs the loop until ctx ends and every goroutine has returned. It returns the cause of the
// end.
func (l *loop) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var helpers sync.WaitGroup
	defer helpers.Wait()
	helpers.Go(func() { l.keepReplicaKey(ctx) })
	updates := make(chan jsapi.Update)
	helpers.Go(func() { cancel(l.watch(ctx, updates)) })

	retry, logTick := time.NewTicker(retryEvery), time.NewTicker(logEvery)
	defer retry.Stop()
	defer logTick.Stop()
	loaded, done := false, ctx.Done()
	l.readAt = time.Now() // the watch reads the bucket first
	for done != nil || len(l.tenures) > 0 || l.reading {
		select {
		case <-done:
			done = nil // each goroutine ends with ctx
		case end := <-l.ended:
			delete(l.tenures, end.group)
			if end.serveErr != nil && ctx.Err() == nil {
				cancel(end.serveErr)
			}
			if end.acquireErr != nil {
				l.noteMissing(end.group, end.acquireErr.Error())
				l.stale = l.stale || isConflict(end.acquireErr)
			}
			continue // the next tick tries again
		case update := <-updates:
			loaded = (loaded || update.Loaded) && !update.Restarted
			l.apply(update)
		case read := <-l.reads:
			l.reading = false
			if read.err != nil {
				if ctx.Err() == nil {
					l.logger.Warn("leases not read", "error", read.err)
				}
				continue
			}
			loaded = true
			l.merge(read)
		case <-logTick.C:
			l.logMissing()
			continue
		case <-retry.C:
			l.readWhenDue(ctx, &helpers)
		}
		if loaded && ctx.Err() == nil {
			l.divide(ctx)
		}
	}
	return context.Cause(ctx)
}

// watch sends the changes of the bucket to updates until ctx ends.
func (l *loop) watch(ctx context.Context, updates chan<- jsapi.Update) error {
	watcher := jsapi.Watcher{Conn: l.conn, KV: l.bucket, Logger: l.logger}
	return watcher.Watch(ctx, func(u jsapi.Update) {
		select {
		case updates <- u:
		case <-ctx.Done():
		}
	})
}
