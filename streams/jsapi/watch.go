package jsapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/time/rate"
)

const (
	// watchPause is the pause before a watch that failed is started again.
	watchPause = 200 * time.Millisecond
	// compareEvery is how often a watch is compared with its bucket, and compareTimeout bounds one
	// comparison.
	compareEvery   = 5 * time.Second
	compareTimeout = 4 * time.Second
	// watchLogEvery is the least time between two log lines about a watch that failed.
	watchLogEvery = 10 * time.Second
)

// errBehind reports that the bucket has an entry that the watch has not delivered for compareEvery.
var errBehind = errors.New("the watch has missed an entry of the bucket")

// Update is what a watch reports. Exactly one field is set.
type Update struct {
	// Entry is a key that was written or deleted.
	Entry jetstream.KeyValueEntry
	// Loaded reports that every key has been delivered since the watch started or restarted.
	Loaded bool
	// Restarted reports that the watch starts again: every key with a record is delivered once
	// more. Keys whose marker has gone meanwhile are not.
	Restarted bool
}

// Watcher follows a bucket.
type Watcher struct {
	// Conn is the connection to the bucket's account.
	Conn *nats.Conn
	KV   jetstream.KeyValue
	// Logger defaults to slog.Default.
	Logger *slog.Logger
}

// Watch calls handle with every key of the bucket and then with every change, in the order of their
// revisions, until ctx ends. Entries may repeat after Restarted. handle is called by one goroutine
// at a time. Watch returns ctx's error, or nats.ErrConnectionClosed.
//
// A watch that fails starts again after a short pause. After a reconnect it starts again at once:
// without that it would notice the missing heartbeats some 20 s later.
//
// A watch reads one server's copy of the bucket. If that server is cut off, or its copy is
// replaced, the watch can stop delivering without an error, and miss delete markers that expire
// meanwhile. So Watch asks the bucket's leader every five seconds for the entry after the last one
// delivered. If the watch has not delivered that entry five seconds later, it starts again.
func (w Watcher) Watch(ctx context.Context, handle func(Update)) error {
	logger := w.Logger
	if logger == nil {
		logger = slog.Default()
	}
	reconnected := w.Conn.StatusChanged(nats.CONNECTED)
	defer w.Conn.RemoveStatusListener(reconnected)
	sometimes := rate.Sometimes{First: 1, Interval: watchLogEvery}
	for first := true; ; first = false {
		if !first {
			handle(Update{Restarted: true})
		}
		err := w.watchOnce(ctx, reconnected, handle)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, nats.ErrConnectionClosed):
			return fmt.Errorf("watch bucket %s: %w", w.KV.Bucket(), err)
		case err == nil:
			continue
		}
		sometimes.Do(func() {
			logger.Warn("bucket watch restarted", "bucket", w.KV.Bucket(), "error", err)
		})
		select {
		case <-time.After(watchPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// watchOnce runs one watch. It returns nil if the watch is to start again at once.
func (w Watcher) watchOnce(
	ctx context.Context, reconnected <-chan nats.Status, handle func(Update),
) error {
	c := &comparison{bucket: NewBucket(w.Conn, w.KV.Bucket()), next: make(chan uint64, 1)}
	defer c.wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The watcher ends with its context. Its Stop would wait for a broker that may be away.
	watcher, err := w.KV.WatchAll(ctx)
	if err != nil {
		return err
	}
	ticker := time.NewTicker(compareEvery)
	defer ticker.Stop()
	delivered := uint64(0)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-reconnected:
			return nil
		case <-ticker.C:
			if c.finish(delivered) {
				return errBehind
			}
			c.start(ctx, delivered)
		case entry, ok := <-watcher.Updates():
			switch {
			case !ok:
				return errors.New("the watch ended")
			case entry == nil:
				handle(Update{Loaded: true})
			default:
				delivered = max(delivered, entry.Revision())
				handle(Update{Entry: entry})
			}
		}
	}
}

// comparison compares a watch with its bucket. It asks in a goroutine of its own, once at a time.
type comparison struct {
	bucket Bucket
	// running reports that a request is under way, or that its answer waits in next: the revision
	// after the last one delivered, 0 if there is none or none is known.
	running bool
	next    chan uint64
}

// start asks for the entry after the last revision delivered, unless a request is under way.
func (c *comparison) start(ctx context.Context, delivered uint64) {
	if c.running {
		return
	}
	c.running = true
	go func() {
		ctx, cancel := context.WithTimeout(ctx, compareTimeout)
		defer cancel()
		e, _ := c.bucket.Next(ctx, delivered+1) // without an answer nothing is known
		c.next <- e.Revision
	}()
}

// finish ends the request that is under way, if its answer has come. It reports whether the watch
// has not yet delivered the entry that the request found.
func (c *comparison) finish(delivered uint64) (behind bool) {
	if !c.running {
		return false
	}
	select {
	case next := <-c.next:
		c.running = false
		return next > delivered
	default:
		return false
	}
}

// wait waits for a request that is under way. Its context has ended.
func (c *comparison) wait() {
	if c.running {
		<-c.next
	}
}
