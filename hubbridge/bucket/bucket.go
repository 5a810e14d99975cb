// Package bucket reads and writes the records that the bridge keeps one a hub, in key-value
// buckets. It gives what the ordinary client of buckets does not: reads that are answered by the
// leader of the bucket's stream, never by a replica that may be behind, and writes that stand only
// if nobody else has written since.
package bucket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
)

// timeout bounds one write.
const timeout = 5 * time.Second

// The broker's errors for a key without a value, and for a bucket that is not there, or not yet, or
// is not known to a server that starts.
const (
	codeNoMessage = 10037
	codeNoStream  = 10059
)

// Bucket is one bucket. Safe for concurrent use.
type Bucket struct {
	nc   *nats.Conn
	name string
}

// New names a bucket that exists, in the account that nc is connected to.
func New(nc *nats.Conn, name string) Bucket { return Bucket{nc, name} }

func (b Bucket) subject(key string) string { return "$KV." + b.name + "." + key }

// Get reads the value of key into value, as JSON, and gives its revision; 0 when there is none, and
// value is left alone. What was acknowledged before the call is seen.
func (b Bucket) Get(ctx context.Context, key string, value any) (revision uint64, err error) {
	question, err := json.Marshal(struct {
		LastFor string `json:"last_by_subj"`
	}{b.subject(key)})
	if err != nil {
		return 0, err
	}
	text, err := streams.Ask(ctx, b.nc, "$JS.API.STREAM.MSG.GET.KV_"+b.name, question)
	if err != nil {
		return 0, fmt.Errorf("bucket %s: get %s: %w", b.name, key, err)
	}
	var answer struct {
		Error   *streams.BrokerError `json:"error"`
		Message *struct {
			Seq  uint64 `json:"seq"`
			Data []byte `json:"data"`
		} `json:"message"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return 0, fmt.Errorf("bucket %s: get %s: unreadable answer: %w", b.name, key, err)
	}
	switch {
	case answer.Error != nil && answer.Error.Code == codeNoMessage:
		return 0, nil
	case answer.Error != nil && answer.Error.Code == codeNoStream:
		return 0, fmt.Errorf(
			"bucket %s: get %s: %w: %w", b.name, key, streams.ErrNoStream, answer.Error,
		)
	case answer.Error != nil:
		return 0, fmt.Errorf("bucket %s: get %s: %w", b.name, key, answer.Error)
	case answer.Message == nil:
		return 0, fmt.Errorf(
			"bucket %s: get %s: %w", b.name, key, errors.New("unreadable answer: no message"),
		)
	}
	if err := json.Unmarshal(answer.Message.Data, value); err != nil {
		return 0, fmt.Errorf("bucket %s: unreadable value of %s: %w", b.name, key, err)
	}
	return answer.Message.Seq, nil
}

// Put writes value under key, as JSON, if its revision is still that one (0: there is none yet),
// and gives the new revision. The errors are those of streams.Store, streams.ErrConflict among
// them.
func (b Bucket) Put(ctx context.Context, key string, value any, revision uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	data, err := json.Marshal(value)
	if err != nil {
		return 0, fmt.Errorf("bucket %s: put %s: %w", b.name, key, err)
	}
	msg := nats.NewMsg(b.subject(key))
	msg.Data = data
	streams.Expect(msg, msg.Subject, revision)
	revision, err = streams.Store(ctx, b.nc, msg)
	if err != nil {
		return 0, fmt.Errorf("bucket %s: put %s: %w", b.name, key, err)
	}
	return revision, nil
}
