package lease

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// tenure is one group that is held or being acquired, with its goroutine.
type tenure struct {
	cancel   context.CancelCauseFunc
	acquired atomic.Bool
}

// tenureEnd reports that the goroutine of a group has returned. acquireErr is the reason if the
// lease was not acquired, serveErr the error of serve.
type tenureEnd struct {
	group                int
	serveErr, acquireErr error
}

// startTenure acquires a group and serves it, in a goroutine that reports its end. revision is that
// of the group's key, 0 when there is no key.
func (l *loop) startTenure(ctx context.Context, group int, revision uint64) {
	ctx, cancel := context.WithCancelCause(ctx)
	t := &tenure{cancel: cancel}
	l.tenures[group] = t
	go func() {
		defer cancel(nil)
		end := tenureEnd{group: group}
		requested := time.Now()
		revision, err := l.acquire(ctx, group, revision)
		if err == nil {
			t.acquired.Store(true)
			end.serveErr = l.holdLease(ctx, cancel, group, revision, requested)
		} else if ctx.Err() == nil {
			end.acquireErr = err
		}
		l.ended <- end
	}()
}

// Term is what a holder knows of its lease, by the clocks of this process, which go on while the
// process or the machine is suspended. Safe for concurrent use.
type Term struct {
	holdFor time.Duration
	// requested is when the last renewal was requested, and tried when the last one was whose
	// outcome was not that the lease is lost.
	requested, tried atomic.Pointer[time.Time]
}

// extend extends the term after a renewal that succeeded and was requested at the given time.
func (t *Term) extend(requested time.Time) {
	t.requested.Store(&requested)
	t.tried.Store(&requested)
}

// try notes a renewal without an answer that was requested at the given time.
func (t *Term) try(requested time.Time) { t.tried.Store(&requested) }

// end ends the term now.
func (t *Term) end() { t.extend(time.Time{}) }

// Held reports whether the lease is certainly held: no other replica may acquire it yet.
func (t *Term) Held() bool { return streams.Elapsed(*t.requested.Load()) < t.holdFor }

// Serving reports whether the lease is held, or could lately not be renewed because the bucket did
// not answer. Another replica may have acquired it in the second case. It is false in a process that
// was suspended, until that has tried to renew the lease.
func (t *Term) Serving() bool {
	return t.Held() || streams.Elapsed(*t.tried.Load()) < t.holdFor
}

// holdLease runs serve while it renews the lease, which was requested at the given time, and
// releases the lease when serve has returned. cancel ends ctx when the lease is lost. The error is
// serve's, unless that is ErrLost.
func (l *loop) holdLease(
	ctx context.Context, cancel context.CancelCauseFunc, group int, revision uint64,
	requested time.Time,
) error {
	l.logger.Debug("lease acquired", "group", group)
	l.metrics.held.Inc()
	defer l.metrics.held.Dec()

	holdFor := l.times.holdFor
	term := &Term{holdFor: holdFor}
	term.extend(requested)
	served := make(chan error, 1)
	go func() { served <- l.serve(ctx, group, term) }()

	ticker := time.NewTicker(l.times.renewEvery)
	defer ticker.Stop()
	expiry := time.NewTimer(time.Until(requested.Add(holdFor)))
	defer expiry.Stop()
	lost, warned := false, false
	lose := func() {
		lost = true
		term.end()
		expiry.Stop()
		l.metrics.lost.Inc()
		cancel(ErrLost)
	}
	// The lease is renewed also after ctx has ended: serve may take longer to finish than a lease
	// lasts.
	for {
		select {
		case err := <-served:
			if !lost && errors.Is(err, ErrLost) {
				l.logger.Error("lease lost", "group", group, "reason", "another replica serves the group")
				lose()
			}
			term.end()
			if !lost {
				l.remove(ctx, groupKey(group), jetstream.LastRevision(revision))
			}
			if context.Cause(ctx) != nil {
				l.logger.Debug("lease released", "group", group, "reason", context.Cause(ctx))
				return nil
			}
			if err == nil {
				err = errors.New("serve returned while the lease was held")
			}
			return err
		case <-expiry.C:
			if l.fenced {
				continue // served on
			}
			// In a process that was suspended for long, this case is the first to run.
			l.logger.Error(
				"lease lost", "group", group, "reason", "not renewed in time", "after", holdFor,
			)
			lose()
		case <-ticker.C:
			if lost || !l.fenced && time.Since(requested) > holdFor {
				continue
			}
			began := time.Now()
			next, err := l.renew(ctx, group, revision)
			ticker.Reset(l.times.renewEvery)
			switch {
			case err == nil:
				revision, requested, warned = next, began, false
				term.extend(requested)
				expiry.Reset(time.Until(requested.Add(holdFor)))
			case isConflict(err):
				l.logger.Error(
					"lease lost", "group", group, "reason", "another replica has written its key",
					"error", err,
				)
				lose()
			default:
				// A new leader may answer at any moment.
				term.try(began)
				ticker.Reset(renewAgain)
				if !warned {
					l.logger.Warn("lease not renewed", "group", group, "error", err)
				}
				warned = true
			}
		}
	}
}

// errRenewing reports that the key is still this replica's, and that an earlier renewal is on its way.
var errRenewing = errors.New("an earlier renewal is not stored yet")

// renew writes the group's key again and returns its new revision.
func (l *loop) renew(ctx context.Context, group int, revision uint64) (uint64, error) {
	return l.write(context.WithoutCancel(ctx), func(ctx context.Context, value []byte) (uint64, error) {
		next, err := l.bucket.Update(ctx, groupKey(group), value, revision)
		if !isConflict(err) {
			return next, err
		}
		// The other revision may be from the last renewal, whose answer was lost. Only the
		// bucket's leader certainly has it.
		current, readErr := jsapi.NewBucket(l.conn, l.bucket.Bucket()).Get(ctx, groupKey(group))
		if readErr != nil || !current.Exists() || !bytes.Equal(current.Value, value) {
			return 0, err
		}
		next, err = l.bucket.Update(ctx, groupKey(group), value, current.Revision)
		if isConflict(err) {
			err = errRenewing
		}
		return next, err
	})
}

// isConflict reports whether a write failed because the key has another revision.
func isConflict(err error) bool {
	return errors.Is(err, jetstream.ErrKeyRevisionMismatch) || errors.Is(err, jetstream.ErrKeyExists)
}

// acquire writes the group's key over its known revision, 0 when there is no key, and returns the
// new one. The revision may be of a deleted key, of a key that is not renewed, or of the
// replica's own key from before a restart.
func (l *loop) acquire(ctx context.Context, group int, revision uint64) (uint64, error) {
	return l.write(ctx, func(ctx context.Context, value []byte) (uint64, error) {
		return l.bucket.Update(ctx, groupKey(group), value, revision)
	})
}
