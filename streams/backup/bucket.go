package backup

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// buckets are those that are taken, in their order. The ledger comes before the DIRECTORY: one of a
// hub that nobody has added yet stops the hub.
var buckets = [...]string{"installation", "key-use", "presence", "ledger", "idempotency"}

const (
	// getBatch is how many keys one question asks for, and getBytes about how many bytes.
	getBatch = 512
	getBytes = 1 << 20
	// putsAtOnce is how many keys are on their way to the broker.
	putsAtOnce = 1024
	// maxEntry bounds a line of a bucket's file: the broker's own limit for a message, in base64.
	maxEntry = 4 << 20
)

// entry is one key of a bucket, as a line of JSON. A key can come more than once: the last counts.
type entry struct {
	Key string `json:"key"`
	// Value is in base64.
	Value []byte `json:"value,omitempty"`
	// Gone says that the key was removed.
	Gone bool `json:"gone,omitempty"`
}

// readBucket writes the keys of a bucket, one a line, until there are none left that it has not
// read.
func readBucket(
	ctx context.Context, nc *nats.Conn, bucket string, w io.Writer, passed func(int64),
) error {
	r, err := newBucketReader(nc, bucket)
	if err != nil {
		return fmt.Errorf("bucket %s: %w", bucket, err)
	}
	defer r.batches.Close()
	lines := json.NewEncoder(w)
	for {
		batch, err := r.next(ctx)
		if err != nil {
			return fmt.Errorf("bucket %s: %w", bucket, err)
		}
		if len(batch) == 0 {
			return nil
		}
		for _, e := range batch {
			if err := lines.Encode(e); err != nil {
				return err
			}
			passed(int64(len(e.Value)))
		}
	}
}

// bucketReader reads the stream of a bucket from the front.
type bucketReader struct {
	bucket  jsapi.Bucket
	batches *jsapi.BatchGetter
	request jsapi.BatchRequest
}

func newBucketReader(nc *nats.Conn, bucket string) (*bucketReader, error) {
	batches, err := jsapi.New(nc).NewBatchGetter(getBatch)
	return &bucketReader{
		bucket: jsapi.NewBucket(nc, bucket), batches: batches,
		request: jsapi.BatchRequest{
			Stream: jsapi.BucketStream(bucket), From: 1, Messages: getBatch, Bytes: getBytes,
		},
	}, err
}

// next returns the next entries, none at the end of the stream.
func (r *bucketReader) next(ctx context.Context) ([]entry, error) {
	msgs, err := r.batch(ctx)
	if err != nil {
		return nil, err
	}
	var batch []entry
	for _, m := range msgs {
		key := strings.TrimPrefix(
			jsapi.Field(m.Header, jsapi.HeaderSubject), jsapi.BucketSubject(r.bucket.Name(), ""),
		)
		batch = append(batch, newEntry(key, m.Data, jsapi.IsDeleteMarker(m.Header)))
		r.request.From = m.Sequence + 1
	}
	if len(batch) > 0 {
		return batch, nil
	}
	// The replica that answered may be behind. Only the leader knows that there is no more.
	last, err := r.bucket.Next(ctx, r.request.From)
	if err != nil || last.Revision == 0 {
		return nil, err
	}
	r.request.From = last.Revision + 1
	return []entry{newEntry(last.Key, last.Value, last.Deleted)}, nil
}

func (r *bucketReader) batch(ctx context.Context) (msgs []jsapi.Message, err error) {
	err = jsapi.Retry{If: jsapi.IsTemporary}.Do(ctx, func(ctx context.Context) error {
		if err := r.batches.Request(r.request); err != nil {
			return err
		}
		msgs, err = r.batches.Collect(ctx)
		return err
	})
	return msgs, err
}

func newEntry(key string, value []byte, deleted bool) entry {
	if deleted {
		return entry{Key: key, Gone: true}
	}
	return entry{Key: key, Value: value}
}

// restoreBucket puts the keys of a file into a bucket that is empty.
func restoreBucket(
	ctx context.Context, nc *nats.Conn, bucket string, r io.Reader, passed func(int64),
) error {
	puts, err := jsapi.NewPipeline(nc, putsAtOnce)
	if err != nil {
		return err
	}
	defer puts.Close()
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxEntry)
	for lines.Scan() {
		e, err := parseEntry(lines.Bytes())
		if err != nil {
			return fmt.Errorf("bucket %s: %w", bucket, err)
		}
		msg := &nats.Msg{Subject: jsapi.BucketSubject(bucket, e.Key), Data: e.Value}
		if e.Gone {
			msg.Header = jsapi.DeleteHeader()
		}
		if err := puts.Send(ctx, msg); err != nil {
			return fmt.Errorf("bucket %s: %w", bucket, err)
		}
		passed(int64(len(lines.Bytes())) + 1)
	}
	if err := errors.Join(lines.Err(), puts.Wait(ctx)); err != nil {
		return fmt.Errorf("bucket %s: %w", bucket, err)
	}
	return nil
}

// parseEntry reads a line of a bucket's file. A key with anything that means more than itself in a
// subject is none of the service's.
func parseEntry(line []byte) (e entry, err error) {
	if err := json.Unmarshal(line, &e); err != nil {
		return e, fmt.Errorf("%w: a line is no key of a bucket", ErrDamaged)
	}
	if e.Key == "" || strings.ContainsAny(e.Key, "*> \t\r\n") ||
		strings.Trim(e.Key, ".") != e.Key ||
		strings.Contains(e.Key, "..") {
		return e, fmt.Errorf("%w: %q is no key", ErrDamaged, e.Key)
	}
	return e, nil
}

// bucketFile names the file of a bucket.
func bucketFile(bucket string) string { return "buckets/" + bucket + ".jsonl" }

// streamFile names the file of a stream's snapshot.
func streamFile(account streams.Account, stream string) string {
	if account == streams.AccountCloud {
		return "streams/" + stream + ".snapshot"
	}
	return "hublogs/" + string(account) + "/" + stream + ".snapshot"
}
