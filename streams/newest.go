package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
)

// codeNoMessage is the broker's error for a key that was never written.
const codeNoMessage = 10037

// Kept is the last that a bucket's stream has under a key. The zero value is nothing at all.
type Kept struct {
	// Revision is the sequence of the message, also of a mark that stays of what was ended or has
	// run out.
	Revision uint64
	// Gone reports that it is such a mark.
	Gone    bool
	Header  nats.Header
	Content []byte
}

// Live reports whether there is a value.
func (k Kept) Live() bool { return k.Revision > 0 && !k.Gone }

// Newest reads what a bucket keeps under a key, and gives its revision: 0 when there is nothing
// (any more). See NewestKept.
func Newest(
	ctx context.Context, nc *nats.Conn, bucket, key string,
) (content []byte, revision uint64, err error) {
	kept, err := NewestKept(ctx, nc, bucket, key)
	if err != nil || !kept.Live() {
		return nil, 0, err
	}
	return kept.Content, kept.Revision, nil
}

// NewestKept reads what a bucket keeps under a key, marks of what is gone among it. The leader of
// the bucket's stream answers: a replica may not know yet of what was written a moment ago, nor of
// what was taken away. NewestKept waits for a leader as Ask does.
//
// A leader that is deposed and cut off answers from an old state for some seconds. Whoever writes
// does it on condition of the revision. Whoever only looks (sessions, passwords of taps) must know
// otherwise that it is not cut off: see Freshness.
func NewestKept(ctx context.Context, nc *nats.Conn, bucket, key string) (Kept, error) {
	question, err := json.Marshal(struct {
		LastFor string `json:"last_by_subj"`
	}{"$KV." + bucket + "." + key})
	if err != nil {
		return Kept{}, err
	}
	text, err := Ask(ctx, nc, JetStreamPrefix+".STREAM.MSG.GET."+bucketStreamName(bucket), question)
	if err != nil {
		return Kept{}, err
	}
	var answer struct {
		Error   *BrokerError `json:"error"`
		Message *struct {
			Seq     uint64 `json:"seq"`
			Headers []byte `json:"hdrs"`
			Data    []byte `json:"data"`
		} `json:"message"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return Kept{}, fmt.Errorf("unreadable answer of the broker: %w", err)
	}
	switch {
	case answer.Error != nil && answer.Error.Code == codeNoMessage:
		return Kept{}, nil
	case answer.Error != nil:
		return Kept{}, answer.Error
	case answer.Message == nil:
		return Kept{}, errors.New("unreadable answer of the broker: no message")
	}
	kept := Kept{Revision: answer.Message.Seq, Content: answer.Message.Data}
	if len(answer.Message.Headers) > 0 {
		if kept.Header, err = nats.DecodeHeadersMsg(answer.Message.Headers); err != nil {
			return Kept{}, fmt.Errorf("unreadable header of %s: %w", key, err)
		}
	}
	kept.Gone = kept.Header.Get("KV-Operation") != "" || kept.Header.Get("Nats-Marker-Reason") != ""
	return kept, nil
}
