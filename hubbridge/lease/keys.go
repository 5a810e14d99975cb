package lease

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams/jsapi"
)

// readTimeout bounds a read of the bucket.
const readTimeout = 8 * time.Second

// knownKey is what this replica knows of a key.
type knownKey struct {
	keyValue
	revision uint64
	// deleted reports that the revision marks a deleted or expired key.
	deleted bool
	// since is when this replica first saw the revision. silent reports that a read has found it
	// not renewed for silentAfter.
	since  time.Time
	silent bool
}

// alive reports whether a replica has the key and renews it.
func (k knownKey) alive() bool { return k.Replica != "" && !k.deleted && !k.silent }

// apply applies an update of the watch.
func (l *loop) apply(update jsapi.Update) {
	if update.Restarted {
		// The next read finds the keys that were removed meanwhile. The known keys stay until then:
		// without them every replica would try to acquire every group.
		l.stale = true
	}
	if update.Entry == nil {
		return
	}
	l.learn(jsapi.Entry{
		Key: update.Entry.Key(), Revision: update.Entry.Revision(), Value: update.Entry.Value(),
		Deleted: update.Entry.Operation() != jetstream.KeyValuePut,
	})
}

// learn stores a record in keys, unless keys has a newer one.
func (l *loop) learn(record jsapi.Entry) {
	k := l.keys[record.Key]
	if record.Revision <= k.revision {
		return
	}
	k = knownKey{revision: record.Revision, deleted: record.Deleted, since: time.Now()}
	if !record.Deleted && json.Unmarshal(record.Value, &k.keyValue) != nil {
		k.Replica = "" // not written by a replica
	}
	l.keys[record.Key] = k
}

// bucketRead is the result of a read of the bucket from its leader.
type bucketRead struct {
	began   time.Time
	records []jsapi.Entry
	err     error
}

// readWhenDue starts a read of the bucket in a goroutine of helpers: at once when keys is known to
// be wrong or a key may be silent, after readSoon while this replica lacks a group, otherwise after
// readEvery.
func (l *loop) readWhenDue(ctx context.Context, helpers *sync.WaitGroup) {
	due := l.times.readEvery
	switch {
	case l.stale, l.suspects():
		due = 0
	case l.lacksGroup():
		due = l.times.readSoon
	}
	if l.reading || ctx.Err() != nil || time.Since(l.readAt) < due {
		return
	}
	l.reading, l.stale, l.readAt = true, false, time.Now()
	began := l.readAt
	helpers.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		records, err := jsapi.NewBucket(l.conn, l.bucket.Bucket()).All(ctx)
		l.reads <- bucketRead{began, records, err}
	})
}

// suspects reports whether a key of another replica has not been renewed for silentAfter, as far as
// the watch has told, while the bucket could be written.
func (l *loop) suspects() bool {
	for _, k := range l.keys {
		if k.alive() && k.Replica != l.replica && time.Since(k.since) > l.times.silentAfter {
			return l.writable(time.Now())
		}
	}
	return false
}

// merge replaces keys by the records of a read, except for keys that changed since the read began.
// It marks keys that have not been renewed as silent, although the bucket could be written: by its
// own clock, the replica of such a key no longer counts its lease as held.
func (l *loop) merge(read bucketRead) {
	present := make(map[string]bool, len(read.records))
	for _, record := range read.records {
		present[record.Key] = true
		l.learn(record)
		if k := l.keys[record.Key]; k.revision == record.Revision {
			k.silent = k.silent ||
				read.began.Sub(k.since) > l.times.silentAfter && l.writable(read.began)
			l.keys[record.Key] = k
		}
	}
	for key, k := range l.keys {
		if !present[key] && k.since.Before(read.began) {
			delete(l.keys, key)
		}
	}
}
