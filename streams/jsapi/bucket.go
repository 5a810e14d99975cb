package jsapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// putTimeout bounds one write to a bucket.
const putTimeout = 5 * time.Second

// BucketStream returns the name of the stream that a key-value bucket is kept in.
func BucketStream(bucket string) string { return "KV_" + bucket }

// BucketSubject returns the subject of a key of a bucket, or of several if key has wildcards.
func BucketSubject(bucket, key string) string { return "$KV." + bucket + "." + key }

// Bucket is a key-value bucket that exists, read from the leader of its stream and written on
// condition of what was read. nats.go's jetstream.KeyValue reads from any replica instead. Safe for
// concurrent use.
type Bucket struct {
	api  API
	name string
}

// NewBucket returns the bucket of that name in the account that nc is connected to.
func NewBucket(nc *nats.Conn, name string) Bucket { return Bucket{api: New(nc), name: name} }

// WithRetry returns a copy that repeats its reads by another policy.
func (b Bucket) WithRetry(r Retry) Bucket {
	b.api = b.api.WithRetry(r)
	return b
}

// Name returns the bucket's name.
func (b Bucket) Name() string { return b.name }

// Conn returns the connection to the bucket's account.
func (b Bucket) Conn() *nats.Conn { return b.api.nc }

// Entry is the last record that a bucket has of a key. Without any record only Key is set.
type Entry struct {
	Key string
	// Revision is the sequence of the record in the bucket's stream, 0 without a record. It is what
	// CompareAndSet expects, also for a deleted key.
	Revision uint64
	// Deleted reports that the record is the marker of a key that was deleted or has expired.
	Deleted bool
	Header  nats.Header
	Value   []byte
}

// Exists reports whether the key has a value.
func (e Entry) Exists() bool { return e.Revision > 0 && !e.Deleted }

// Get returns the entry of a key. A key without a value is no error: see Entry.Exists. Errors:
// ErrNoStream, ErrNoLeader, ctx's.
//
// A deposed leader may answer from an old state for some seconds. Callers that write do so on
// condition of the revision; callers that only read must make sure in another way that they are not
// cut off.
func (b Bucket) Get(ctx context.Context, key string) (Entry, error) {
	msg, err := b.api.GetLast(ctx, BucketStream(b.name), BucketSubject(b.name, key))
	if errors.Is(err, ErrNotFound) {
		return Entry{Key: key}, nil
	}
	if err != nil {
		return Entry{}, fmt.Errorf("bucket %s: get %s: %w", b.name, key, err)
	}
	return b.entry(msg), nil
}

// GetJSON is Get, and decodes the JSON of an entry that exists into value.
func (b Bucket) GetJSON(ctx context.Context, key string, value any) (Entry, error) {
	e, err := b.Get(ctx, key)
	if err != nil || !e.Exists() {
		return e, err
	}
	if err := json.Unmarshal(e.Value, value); err != nil {
		return Entry{}, fmt.Errorf("bucket %s: unreadable value of %s: %w", b.name, key, err)
	}
	return e, nil
}

// Next returns the entry with the lowest revision from a given one (at least 1) on. Without one the
// entry's Revision is 0.
func (b Bucket) Next(ctx context.Context, from uint64) (Entry, error) {
	msg, err := b.api.GetNext(ctx, BucketStream(b.name), from, BucketSubject(b.name, ">"))
	if errors.Is(err, ErrNotFound) {
		return Entry{}, nil
	}
	if err != nil {
		return Entry{}, fmt.Errorf("bucket %s: next entry from %d: %w", b.name, from, err)
	}
	return b.entry(msg), nil
}

// All returns the entry of every key in the order of their revisions, deleted ones among them. It
// sends a request for each entry, so it is for small buckets. A key that is written meanwhile is
// returned as before or as after the write.
func (b Bucket) All(ctx context.Context) ([]Entry, error) {
	position := map[string]int{}
	var all []Entry
	for from := uint64(1); ; {
		e, err := b.Next(ctx, from)
		if err != nil || e.Revision == 0 {
			return all, err
		}
		if i, seen := position[e.Key]; seen {
			all[i] = e
		} else {
			position[e.Key] = len(all)
			all = append(all, e)
		}
		from = e.Revision + 1
	}
}

// Keys returns the keys that have a record, deleted ones among them, in no order. nats.go's listing
// can end early without an error.
func (b Bucket) Keys(ctx context.Context) ([]string, error) {
	counts, err := b.api.SubjectCounts(ctx, BucketStream(b.name), BucketSubject(b.name, ">"))
	if err != nil {
		return nil, fmt.Errorf("bucket %s: list keys: %w", b.name, err)
	}
	keys := make([]string, 0, len(counts))
	for subject := range counts {
		keys = append(keys, b.key(subject))
	}
	return keys, nil
}

// CompareAndSet writes a value under a key if the key's revision is still that one (0: the key has
// no record), and returns the new revision. header may be nil. It sends once; the errors are those
// of Append.
func (b Bucket) CompareAndSet(
	ctx context.Context, key string, value []byte, header nats.Header, revision uint64,
) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	msg := nats.NewMsg(BucketSubject(b.name, key))
	msg.Data = value
	for name, values := range header {
		msg.Header[name] = values
	}
	ExpectLast(msg, msg.Subject, revision)
	revision, err := Append(ctx, b.api.nc, msg)
	if err != nil {
		return 0, fmt.Errorf("bucket %s: put %s: %w", b.name, key, err)
	}
	return revision, nil
}

// CompareAndSetJSON is CompareAndSet of value as JSON.
func (b Bucket) CompareAndSetJSON(
	ctx context.Context, key string, value any, revision uint64,
) (uint64, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return 0, fmt.Errorf("bucket %s: put %s: %w", b.name, key, err)
	}
	return b.CompareAndSet(ctx, key, text, nil, revision)
}

func (b Bucket) entry(msg *jetstream.RawStreamMsg) Entry {
	return Entry{
		Key: b.key(msg.Subject), Revision: msg.Sequence, Deleted: IsDeleteMarker(msg.Header),
		Header: msg.Header, Value: msg.Data,
	}
}

func (b Bucket) key(subject string) string {
	return strings.TrimPrefix(subject, BucketSubject(b.name, ""))
}

// IsDeleteMarker reports whether a message of a bucket's stream marks a key without a value: a
// client has deleted or purged the key, or it has expired.
func IsDeleteMarker(h nats.Header) bool {
	return Field(h, headerOperation) != "" || Field(h, headerMarkerReason) != ""
}

// DeleteHeader returns the header of a message that deletes a key and leaves a marker.
func DeleteHeader() nats.Header { return nats.Header{headerOperation: {"DEL"}} }

// PurgeHeader returns the header of a message that deletes a key with all its former values, and
// leaves a marker for that long.
func PurgeHeader(marker time.Duration) nats.Header {
	h := TTLHeader(marker)
	h[headerOperation] = []string{"PURGE"}
	h[jetstream.MsgRollup] = []string{jetstream.MsgRollupSubject}
	return h
}

// TTLHeader returns the header of a message that expires after that long: whole seconds, at least
// one.
func TTLHeader(ttl time.Duration) nats.Header {
	ttl = max(ttl.Truncate(time.Second), time.Second)
	return nats.Header{jetstream.MsgTTLHeader: {ttl.String()}}
}
