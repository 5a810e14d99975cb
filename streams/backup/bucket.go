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

// buckets are the buckets of a backup, in the order in which they are written. Ingest checkpoints
// (bucket checkpoints) come before the DIRECTORY: a checkpoint of a hub that no organization has
// added stops the hub.
var buckets = [...]string{
	"installation", "key-use", "presence", "checkpoints", "idempotency", streams.AlarmMailsBucket,
	streams.WebhooksBucket, streams.CodesBucket,
}

const (
	// getBatch is how many keys are read at once, and getBytes about how many bytes.
	getBatch = 512
	getBytes = 1 << 20
	// pendingPuts is how many written keys may wait for the broker's acknowledgement.
	pendingPuts = 1024
	// maxEntry is the most bytes of a line of a bucket's file: the broker's limit of a message, in
	// base64.
	maxEntry = 4 << 20
)

// entry is one key of a bucket, as a line of JSON. If a key has several lines, the last one counts.
type entry struct {
	Key string `json:"key"`
	// Value is in base64.
	Value []byte `json:"value,omitempty"`
	// Deleted reports that the key was deleted.
	Deleted bool `json:"gone,omitempty"`
}

// readBucket writes the keys of a bucket to w, one a line, until it has read the last message of
// the bucket's stream. read is called with the size of each value.
func readBucket(
	ctx context.Context, nc *nats.Conn, bucket string, w io.Writer, read func(int64),
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
			read(int64(len(e.Value)))
		}
	}
}

// bucketReader reads the stream of a bucket from its first message on.
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

// next returns the next entries, or none at the end of the stream.
func (r *bucketReader) next(ctx context.Context) ([]entry, error) {
	msgs, err := r.nextBatch(ctx)
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
	// The replica that answered may be behind. Only the leader knows that there are no more keys.
	last, err := r.bucket.Next(ctx, r.request.From)
	if err != nil || last.Revision == 0 {
		return nil, err
	}
	r.request.From = last.Revision + 1
	return []entry{newEntry(last.Key, last.Value, last.Deleted)}, nil
}

func (r *bucketReader) nextBatch(ctx context.Context) (msgs []jsapi.Message, err error) {
	err = jsapi.Retry{If: jsapi.IsTemporary}.Do(ctx, func(ctx context.Context) (err error) {
		msgs, err = r.batches.Get(ctx, r.request)
		return err
	})
	return msgs, err
}

func newEntry(key string, value []byte, deleted bool) entry {
	if deleted {
		return entry{Key: key, Deleted: true}
	}
	return entry{Key: key, Value: value}
}

// restoreBucket writes the keys of a bucket's file to an empty bucket. written is called with the
// size of each line.
func restoreBucket(
	ctx context.Context, nc *nats.Conn, bucket string, r io.Reader, written func(int64),
) error {
	puts, err := jsapi.NewPipeline(nc, pendingPuts)
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
		if e.Deleted {
			msg.Header = jsapi.DeleteHeader()
		}
		if err := puts.Send(ctx, msg); err != nil {
			return fmt.Errorf("bucket %s: %w", bucket, err)
		}
		written(int64(len(lines.Bytes())) + 1)
	}
	if err := errors.Join(lines.Err(), puts.Wait(ctx)); err != nil {
		return fmt.Errorf("bucket %s: %w", bucket, err)
	}
	return nil
}

// parseEntry decodes a line of a bucket's file. A key that would be another subject or several
// subjects is ErrDamaged: the service has no such keys.
func parseEntry(line []byte) (e entry, err error) {
	if err := json.Unmarshal(line, &e); err != nil {
		return e, fmt.Errorf("%w: invalid line: %w", ErrDamaged, err)
	}
	if e.Key == "" || strings.ContainsAny(e.Key, "*> \t\r\n") ||
		strings.Trim(e.Key, ".") != e.Key ||
		strings.Contains(e.Key, "..") {
		return e, fmt.Errorf("%w: invalid key %q", ErrDamaged, e.Key)
	}
	return e, nil
}

// bucketFile returns the name of a bucket's file.
func bucketFile(bucket string) string { return "buckets/" + bucket + ".jsonl" }

// streamFile returns the name of the file with a stream's snapshot.
func streamFile(stream string) string {
	if isJournal(stream) {
		return "hublogs/" + stream + ".snapshot"
	}
	return "streams/" + stream + ".snapshot"
}

// isJournal reports whether a stream is a journal or the journals' index: the hub logs.
func isJournal(stream string) bool { return strings.HasPrefix(stream, "JOURNAL_") }
