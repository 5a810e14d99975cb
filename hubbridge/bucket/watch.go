package bucket

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
	// watchPause is the pause before a watch that could not be begun again is tried once more.
	watchPause = 200 * time.Millisecond
	// lookEvery is how often a watch is compared with the bucket, and lookTimeout bounds how long
	// that takes.
	lookEvery   = 5 * time.Second
	lookTimeout = 4 * time.Second
	// troubleEvery is the time between two lines about a watch that cannot be begun.
	troubleEvery = 10 * time.Second
)

// errBehind reports that the bucket has what the watch has not given for lookEvery.
var errBehind = errors.New("the watch has missed what is in the bucket")

// Update is what Watch has to say. Without an Entry it is about the watch itself.
type Update struct {
	// Entry is a key that was written or taken away.
	Entry jetstream.KeyValueEntry
	// Loaded says that every key has been given since the watch began, or began again.
	Loaded bool
	// Again says that it begins again: every key that is there is given once more; what was taken
	// away in between is not.
	Again bool
}

// Watcher follows a bucket.
type Watcher struct {
	// Conn is the connection to the bucket's account.
	Conn *nats.Conn
	KV   jetstream.KeyValue
	Log  *slog.Logger
}

// Watch calls take with every key of the bucket, and then every change, until ctx ends; it returns
// ctx's error then, or nats.ErrConnectionClosed. A watch that cannot be begun is tried again: the
// broker may be about to have a leader. After the connection has lost its broker and found one
// again it begins again at once. (A watch by itself would notice by missing heartbeats, some twenty
// seconds later.)
//
// A watch hangs on one server's copy of the bucket. Where that server is cut off, or its copy is
// made anew, the watch can stand still without a word, and pass over marks of deletion that have
// gone meanwhile. So every five seconds the leader of the bucket is asked what comes after the last
// entry: a watch that has not given it within another five begins again.
func (w Watcher) Watch(ctx context.Context, take func(Update)) error {
	back := w.Conn.StatusChanged(nats.CONNECTED)
	defer w.Conn.RemoveStatusListener(back)
	trouble := rate.Sometimes{First: 1, Interval: troubleEvery}
	for first := true; ; first = false {
		if !first {
			take(Update{Again: true})
		}
		err := w.watch(ctx, back, take)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, nats.ErrConnectionClosed):
			return fmt.Errorf("watch bucket %s: %w", w.KV.Bucket(), err)
		case err == nil:
			continue
		}
		trouble.Do(
			func() { w.Log.Warn("bucket watch begins again", "bucket", w.KV.Bucket(), "error", err) },
		)
		select {
		case <-time.After(watchPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// watch is one watch: nil when it should begin again.
func (w Watcher) watch(ctx context.Context, back <-chan nats.Status, take func(Update)) error {
	look := &look{bucket: New(w.Conn, w.KV.Bucket()), found: make(chan uint64, 1)}
	defer look.end()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watcher, err := w.KV.WatchAll(ctx)
	if err != nil {
		return err
	}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	given := uint64(0)
	// The watcher ends with its context. Its own Stop would wait for a broker that may be away.
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-back:
			return nil
		case <-ticker.C:
			if look.missed(given) {
				return errBehind
			}
			look.begin(ctx, given)
		case entry, ok := <-watcher.Updates():
			if !ok {
				return errors.New("it ended")
			}
			if entry != nil {
				given = max(given, entry.Revision())
			}
			take(Update{Entry: entry, Loaded: entry == nil})
		}
	}
}

// look compares a watch with its bucket. Questions are asked in a goroutine of their own, one at a
// time.
type look struct {
	bucket Bucket
	// asking reports that a question is under way, or that its answer waits in found: the revision
	// that comes next, 0 when nothing is known.
	asking bool
	found  chan uint64
}

// begin asks for what comes after the last revision that the watch has given.
func (l *look) begin(ctx context.Context, given uint64) {
	if l.asking {
		return
	}
	l.asking = true
	go func() {
		ctx, cancel := context.WithTimeout(ctx, lookTimeout)
		defer cancel()
		record, ok, err := l.bucket.Next(ctx, given+1)
		if err != nil || !ok {
			record.Revision = 0
		}
		l.found <- record.Revision
	}()
}

// missed reports whether the watch has still not given what was there when the last question was
// asked.
func (l *look) missed(given uint64) bool {
	if !l.asking {
		return false
	}
	select {
	case found := <-l.found:
		l.asking = false
		return found > given
	default:
		return false
	}
}

// end waits for a question that is under way. Its context has ended.
func (l *look) end() {
	if l.asking {
		<-l.found
	}
}
