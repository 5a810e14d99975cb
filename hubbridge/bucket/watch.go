package bucket

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// watchPause is the pause before a watch that could not be begun again is tried once more.
const watchPause = 200 * time.Millisecond

// Update is what Watch has to say. Without an Entry it is about the watch itself.
type Update struct {
	// Entry is a key that was written or taken away.
	Entry jetstream.KeyValueEntry
	// Loaded says that every key has been given since the watch began, or began again.
	Loaded bool
	// Again says that it begins again: every key that is there is given once more; what was taken away in between is not.
	Again bool
}

// Watch gives take every key of a bucket, and then every change, until ctx ends; it returns ctx's error then, and any other error if it cannot
// begin. After nc has lost its broker and found one again it begins again at once. (A watch by itself would notice by missing heartbeats,
// some twenty seconds later.)
func Watch(ctx context.Context, nc *nats.Conn, kv jetstream.KeyValue, take func(Update)) error {
	back := nc.StatusChanged(nats.CONNECTED)
	defer nc.RemoveStatusListener(back)
	for first := true; ; first = false {
		if !first {
			take(Update{Again: true})
		}
		err := watch(ctx, kv, back, take)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && first:
			return fmt.Errorf("watch bucket %s: %w", kv.Bucket(), err)
		case err == nil:
			continue
		}
		select {
		case <-time.After(watchPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// watch is one watch: nil when it should begin again.
func watch(ctx context.Context, kv jetstream.KeyValue, back <-chan nats.Status, take func(Update)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watcher, err := kv.WatchAll(ctx)
	if err != nil {
		return err
	}
	// The watcher ends with its context. Its own Stop would wait for a broker that may be away.
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-back:
			return nil
		case entry, ok := <-watcher.Updates():
			if !ok {
				return fmt.Errorf("watch bucket %s: it ended", kv.Bucket())
			}
			take(Update{Entry: entry, Loaded: entry == nil})
		}
	}
}
