package replicas

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

const (
	// heartbeatEvery is how often a replica renews its heartbeat, heartbeatRetry the pause after a
	// renewal that failed.
	heartbeatEvery = 2 * time.Second
	heartbeatRetry = 250 * time.Millisecond
	// heartbeatGood is how long a replica may rely on a heartbeat: less than streams.HeartbeatTTL,
	// after which the others no longer know of the replica.
	heartbeatGood = streams.HeartbeatTTL - 2*time.Second
	// heartbeatTimeout bounds one operation on the bucket of heartbeats.
	heartbeatTimeout = 2 * time.Second
)

// awaitHeartbeats opens the bucket of heartbeats, however long it takes until the broker has a
// leader for it.
func (b *Barrier) awaitHeartbeats(ctx context.Context) (jetstream.KeyValue, error) {
	js, err := jetstream.New(b.nc)
	if err != nil {
		return nil, fmt.Errorf("barrier: %w", err)
	}
	for {
		var opened jetstream.KeyValue
		err := jsapi.SetUp(ctx, func(ctx context.Context) (err error) {
			opened, err = js.KeyValue(ctx, streams.BucketReplicas)
			return err
		})
		if err == nil || ctx.Err() != nil || errors.Is(err, nats.ErrConnectionClosed) {
			return opened, err
		}
		b.logger.Warn("heartbeats not opened", "error", err)
		streams.Sleep(ctx, heartbeatEvery)
	}
}

// keepHeartbeat renews the replica's heartbeat until ctx ends, and deletes it then.
func (b *Barrier) keepHeartbeat(ctx context.Context, bucket jetstream.KeyValue) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	logged := false
	for {
		select {
		case <-timer.C:
			began := time.Now()
			renewing, cancel := context.WithTimeout(ctx, heartbeatTimeout)
			_, err := bucket.Put(renewing, b.id, []byte("{}"))
			cancel()
			switch {
			case err == nil:
				b.renewed.Store(&began)
				logged = false
				timer.Reset(heartbeatEvery)
			case ctx.Err() == nil:
				if !logged {
					logged = true
					b.logger.Warn("heartbeat not renewed", "replica", b.id, "error", err)
				}
				timer.Reset(heartbeatRetry)
			}
		case <-ctx.Done():
			b.renewed.Store(nil)
			lastCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goneAfter)
			defer cancel()
			if err := bucket.Delete(lastCtx, b.id); err != nil {
				b.logger.Warn("heartbeat not deleted", "replica", b.id, "error", err)
			}
			return ctx.Err()
		}
	}
}

// Registered reports whether the other replicas know of this one: its heartbeat is stored and does
// not expire yet.
func (b *Barrier) Registered() bool {
	renewed := b.renewed.Load()
	return renewed != nil && streams.Elapsed(*renewed) < heartbeatGood
}

// registered lists the replicas with a heartbeat, perhaps with some that have just ended. The
// bucket's leader is asked: a follower may not know of the newest replica, which would not be
// waited for.
func (b *Barrier) registered(ctx context.Context) ([]string, error) {
	return b.heartbeats().Keys(ctx)
}

// hasEnded reports whether a replica's heartbeat has expired or was deleted.
func (b *Barrier) hasEnded(ctx context.Context, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, heartbeatTimeout)
	defer cancel()
	heartbeat, err := b.heartbeats().Get(ctx, id)
	return err == nil && !heartbeat.Exists()
}

func (b *Barrier) heartbeats() jsapi.Bucket { return jsapi.NewBucket(b.nc, streams.BucketReplicas) }
