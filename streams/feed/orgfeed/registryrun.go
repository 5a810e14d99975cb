package orgfeed

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"hubcloud/streams/jsapi"
)

const (
	// writeTick is the time between two looks at what must be written.
	writeTick = time.Second
	// writeEvery is the least time between two writes of an organization's value. It is longer for
	// values of more than writeEvery times writeRate bytes.
	writeEvery = 5 * time.Second
	writeRate  = 16 << 10 // bytes a second
	// tickWrites and tickBytes bound the writes of one writeTick.
	tickWrites = 20
	tickBytes  = 1 << 20
	// countEvery is the time between two writes for nothing but the counts of readers that stand
	// still.
	countEvery = time.Minute
	// lastWriteTimeout bounds the writes at the end of Run.
	lastWriteTimeout = time.Second
	lastTries        = 3
)

// Run follows the bucket and writes to it until ctx ends, and once more then. It returns ctx's
// error, or nats.ErrConnectionClosed.
func (r *Registry) Run(ctx context.Context) error {
	loops, ctx := errgroup.WithContext(ctx)
	loops.Go(func() error {
		watcher := jsapi.Watcher{Conn: r.cfg.Conn, KV: r.cfg.Bucket, Logger: r.cfg.Logger}
		return watcher.Watch(ctx, r.watched)
	})
	loops.Go(func() error { return r.runWrites(ctx) })
	return loops.Wait()
}

func (r *Registry) watched(u jsapi.Update) {
	if u.Entry == nil || u.Entry.Operation() != jetstream.KeyValuePut {
		return
	}
	if err := r.merge(u.Entry.Key(), u.Entry.Value(), u.Entry.Revision()); err != nil {
		r.cfg.Logger.Error("feed readers unreadable", "error", err)
	}
}

func (r *Registry) runWrites(ctx context.Context) error {
	ticker := time.NewTicker(writeTick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			r.writeAll(context.WithoutCancel(ctx))
			return ctx.Err()
		case <-ticker.C:
			r.measure()
			r.writeDue(ctx)
		}
	}
}

// due returns the organizations whose values must be written by now, the longest due first.
func (r *Registry) due(now time.Time) (ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var due []*org
	for id, o := range r.orgs {
		if len(o.readers) == 0 && !o.dirty && now.Sub(o.written) > keepReaders {
			delete(r.orgs, id)
			continue
		}
		if (o.dirty || now.Sub(o.written) > countEvery && r.hasGrown(o, now)) && !now.Before(o.due) {
			due = append(due, o)
		}
	}
	slices.SortFunc(due, func(a, b *org) int { return a.due.Compare(b.due) })
	for _, o := range due {
		ids = append(ids, o.id)
	}
	return ids
}

// hasGrown reports whether events were stored since the count of a reader of the feed that can
// still read them. The caller must hold r.mu.
func (r *Registry) hasGrown(o *org, now time.Time) bool {
	for e := o.newest.Front(); e != nil; e = e.Next() {
		seen := e.Value.(*reader)
		if seen.Hub == "" && r.left(seen, now) >= 0 && r.cfg.Counted(o.id) != seen.mark {
			return true
		}
	}
	return false
}

// writeAll writes what has changed, as far as that is possible within lastWriteTimeout.
func (r *Registry) writeAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastWriteTimeout)
	defer cancel()
	for range lastTries { // another replica may write at the same time
		for _, id := range r.due(r.cfg.Now().Add(writeEvery + maxValue/writeRate*time.Second)) {
			if ctx.Err() != nil {
				return
			}
			r.write(ctx, id)
		}
	}
}

func (r *Registry) writeDue(ctx context.Context) {
	bytes := 0
	for i, id := range r.due(r.cfg.Now()) {
		if i == tickWrites || bytes > tickBytes || ctx.Err() != nil {
			return
		}
		bytes += r.write(ctx, id)
	}
}

// write writes an organization's value and returns its size. A write that fails is repeated later.
func (r *Registry) write(ctx context.Context, id string) (bytes int) {
	bucket := jsapi.NewBucket(r.cfg.Conn, r.cfg.Bucket.Bucket())
	r.mu.Lock()
	o, now := r.orgs[id], r.cfg.Now()
	if o == nil {
		r.mu.Unlock()
		return 0
	}
	value, err := r.marshal(o, now)
	revision := o.revision
	wait := max(writeEvery, time.Duration(len(value))*time.Second/writeRate)
	o.dirty, o.due = false, now.Add(wait)
	r.mu.Unlock()
	if err == nil {
		revision, err = bucket.CompareAndSet(ctx, id, value, nil, revision)
	}
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		o.revision, o.written = max(o.revision, revision), now
		return len(value)
	}
	if errors.Is(err, jsapi.ErrConflict) {
		// Another replica has written since, or the value has expired.
		err = r.readAgain(ctx, bucket, id)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	o.dirty = true
	if err == nil {
		o.due = now.Add(writeTick)
	} else if ctx.Err() == nil {
		r.metrics.failures.Inc()
		r.cfg.Logger.Warn("feed readers not written", "org_id", id, "error", err)
	}
	return len(value)
}

// readAgain merges the value that an organization has in the bucket.
func (r *Registry) readAgain(ctx context.Context, bucket jsapi.Bucket, id string) error {
	entry, err := bucket.Get(ctx, id)
	if err != nil {
		return err
	}
	if entry.Exists() {
		return r.merge(id, entry.Value, entry.Revision)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.org(id).revision = entry.Revision
	return nil
}
