package lease

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams/jsapi"
)

// hold takes a shard, whose key has that revision (0: there is none), and serves it, in a goroutine
// that reports its end.
func (r *running) hold(ctx context.Context, shard int, revision uint64) {
	ctx, cancel := context.WithCancelCause(ctx)
	h := &holding{cancel: cancel}
	r.mine[shard] = h
	go func() {
		defer cancel(nil)
		ended := over{shard: shard}
		asked := time.Now()
		revision, err := r.acquire(ctx, shard, revision)
		if err == nil {
			h.taken.Store(true)
			ended.err = r.life(ctx, cancel, shard, revision, asked)
		} else if ctx.Err() == nil {
			ended.refused = err
		}
		r.over <- ended
	}()
}

// term is until when a lease is held at least, by the clock of this process, which goes on while
// the process stands still.
type term struct{ until atomic.Pointer[time.Time] }

// extend sets the term's end by when the last renewal that succeeded was asked for.
func (t *term) extend(asked time.Time) {
	until := asked.Add(letGo)
	t.until.Store(&until)
}

// end ends the term now.
func (t *term) end() { t.until.Store(&time.Time{}) }

// held reports whether the term has not ended.
func (t *term) held() bool { return time.Now().Before(*t.until.Load()) }

// life is the life of one lease, from when it was asked for: serve while it is renewed, give it up.
// Its error is serve's own.
func (r *running) life(
	ctx context.Context, cancel context.CancelCauseFunc, shard int, revision uint64,
	asked time.Time,
) error {
	r.log.Debug("lease taken", "shard", shard)
	r.metrics.held.Inc()
	defer r.metrics.held.Dec()

	var term term
	term.extend(asked)
	served := make(chan error, 1)
	go func() { served <- r.serve(ctx, shard, term.held) }()

	ticker := time.NewTicker(renewEvery)
	defer ticker.Stop()
	expiry := time.NewTimer(time.Until(asked.Add(letGo)))
	defer expiry.Stop()
	// The lease is renewed also while serve finishes: that may take longer than the lease would
	// last.
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
			r.log.Error(
				"lease lost", "shard", shard, "reason", "not renewed in time", "after", letGo,
			)
			lost = true
			term.end()
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
				term.extend(asked)
				expiry.Reset(time.Until(asked.Add(letGo)))
			case conflict(err):
				r.log.Error(
					"lease lost", "shard", shard, "reason", "somebody else has written its key",
					"error", err,
				)
				lost = true
				term.end()
				r.metrics.lost.Inc()
				expiry.Stop()
				cancel(ErrLost)
			default:
				r.log.Warn("lease not renewed", "shard", shard, "error", err)
			}
		}
	}
}

// renew writes the shard's key again.
func (r *running) renew(ctx context.Context, shard int, revision uint64) (uint64, error) {
	return r.write(
		context.WithoutCancel(ctx),
		func(ctx context.Context, value []byte) (uint64, error) {
			next, err := r.bucket.Update(ctx, shardKey(shard), value, revision)
			if !conflict(err) {
				return next, err
			}
			// The writer in between may have been the last renewal, whose answer was lost. The
			// leader is asked: another server may not have it yet.
			current, readErr := jsapi.NewBucket(r.cloud, r.bucket.Bucket()).Get(ctx, shardKey(shard))
			if readErr != nil || !current.Exists() || !bytes.Equal(current.Value, value) {
				return 0, err
			}
			return r.bucket.Update(ctx, shardKey(shard), value, current.Revision)
		},
	)
}

func conflict(err error) bool {
	return errors.Is(err, jetstream.ErrKeyRevisionMismatch) ||
		errors.Is(err, jetstream.ErrKeyExists)
}

// acquire writes the shard's key over the revision that it is known to have, 0 when there is none:
// over the mark of one that has gone, the replica's own when it held the shard before, or one that
// is not renewed.
func (r *running) acquire(ctx context.Context, shard int, revision uint64) (uint64, error) {
	return r.write(ctx, func(ctx context.Context, value []byte) (uint64, error) {
		return r.bucket.Update(ctx, shardKey(shard), value, revision)
	})
}
