package jsapi

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Each calls do with every key of a bucket that has a value, and returns do's first error. It reads
// the copy of one server in one pass, which is fast for large buckets: an entry may be some seconds
// old where that server is behind.
func Each(
	ctx context.Context, kv jetstream.KeyValue, do func(jetstream.KeyValueEntry) error,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the watch
	watch, err := kv.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return fmt.Errorf("read bucket %s: %w", kv.Bucket(), err)
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case entry, ok := <-watch.Updates():
			if !ok {
				return fmt.Errorf("read bucket %s: the watch ended early", kv.Bucket())
			}
			if entry == nil { // the end of what the bucket held
				return nil
			}
			if err := do(entry); err != nil {
				return err
			}
		}
	}
}
