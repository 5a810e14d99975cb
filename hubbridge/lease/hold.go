package lease

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// hold takes a shard, whose key has that revision (0: there is none), and serves it, in a goroutine that reports its end.
func (r *running) hold(ctx context.Context, shard int, revision uint64) {
	ctx, cancel := context.WithCancelCause(ctx)
	r.mine[shard] = &holding{cancel}
	go func() {
		defer cancel(nil)
		r.over <- over{shard, r.life(ctx, cancel, shard, revision)}
	}()
}

// life is the life of one lease: take it, serve while it is renewed, give it up. Its error is serve's own.
func (r *running) life(ctx context.Context, cancel context.CancelCauseFunc, shard int, revision uint64) error {
	asked := time.Now()
	revision, err := r.acquire(ctx, shard, revision)
	if err != nil {
		if ctx.Err() == nil && !conflict(err) {
			r.log.Warn("a lease cannot be taken", "shard", shard, "error", err)
		}
		return nil
	}
	r.log.Debug("lease taken", "shard", shard)
	r.metrics.held.Inc()
	defer r.metrics.held.Dec()
	served := make(chan error, 1)
	go func() { served <- r.serve(ctx, shard) }()

	ticker := time.NewTicker(renewEvery)
	defer ticker.Stop()
	expiry := time.NewTimer(time.Until(asked.Add(letGo)))
	defer expiry.Stop()
	// The lease is renewed also while serve finishes: that may take longer than the lease would last.
	for lost := false; ; {
		select {
		case err := <-served:
			if !lost {
				r.remove(ctx, shardKey(shard), jetstream.LastRevision(revision))
			}
			if context.Cause(ctx) != nil {
				r.log.Debug("lease given up", "shard", shard, "reason", context.Cause(ctx))
				return nil
			}
			if err == nil {
				err = errors.New("the shard is not served any more")
			}
			return err
		case <-expiry.C:
			// Also the first thing that a process does that stood still for long.
			r.log.Error("a lease is let go: it could not be renewed", "shard", shard, "for", letGo)
			lost = true
			r.metrics.lost.Inc()
			cancel(ErrLost)
		case <-ticker.C:
			if lost || time.Since(asked) > letGo {
				continue
			}
			began := time.Now()
			next, err := r.renew(ctx, shard, revision)
			switch {
			case err == nil:
				revision, asked = next, began
				expiry.Reset(time.Until(asked.Add(letGo)))
			case conflict(err):
				r.log.Error("a lease is lost", "shard", shard, "error", err)
				lost = true
				r.metrics.lost.Inc()
				expiry.Stop()
				cancel(ErrLost)
			default:
				r.log.Warn("a lease cannot be renewed", "shard", shard, "error", err)
			}
		}
	}
}

// renew writes the shard's key again.
func (r *running) renew(ctx context.Context, shard int, revision uint64) (uint64, error) {
	return r.write(context.WithoutCancel(ctx), func(ctx context.Context, value []byte) (uint64, error) {
		next, err := r.bucket.Update(ctx, shardKey(shard), value, revision)
		if !conflict(err) {
			return next, err
		}
		// The writer in between may have been the last renewal, whose answer was lost.
		current, getErr := r.bucket.Get(ctx, shardKey(shard))
		if getErr != nil || !bytes.Equal(current.Value(), value) {
			return 0, err
		}
		return r.bucket.Update(ctx, shardKey(shard), value, current.Revision())
	})
}

func conflict(err error) bool {
	return errors.Is(err, jetstream.ErrKeyRevisionMismatch) || errors.Is(err, jetstream.ErrKeyExists)
}

// acquire writes the shard's key: anew when there is none, over the replica's own when it held the shard before.
func (r *running) acquire(ctx context.Context, shard int, revision uint64) (uint64, error) {
	return r.write(ctx, func(ctx context.Context, value []byte) (uint64, error) {
		if revision == 0 {
			return r.bucket.Create(ctx, shardKey(shard), value)
		}
		return r.bucket.Update(ctx, shardKey(shard), value, revision)
	})
}
