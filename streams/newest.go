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

// Newest reads what a bucket keeps under a key, and gives its revision: 0 when there is nothing (any more). The leader of the bucket's stream
// answers: a replica may not know yet of what was written a moment ago, nor of what was taken away. Newest waits for a leader as
// Ask does.
//
// A leader that is deposed and cut off answers from an old state for some seconds. Whoever writes does it on condition of the
// revision. Whoever only looks (sessions, passwords of taps) must know otherwise that it is not cut off: see Freshness.
func Newest(ctx context.Context, nc *nats.Conn, bucket, key string) (content []byte, revision uint64, err error) {
	question, err := json.Marshal(struct {
		LastFor string `json:"last_by_subj"`
	}{"$KV." + bucket + "." + key})
	if err != nil {
		return nil, 0, err
	}
	text, err := Ask(ctx, nc, JetStreamPrefix+".STREAM.MSG.GET."+bucketStreamName(bucket), question)
	if err != nil {
		return nil, 0, err
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
		return nil, 0, fmt.Errorf("unreadable answer of the broker: %w", err)
	}
	switch {
	case answer.Error != nil && answer.Error.Code == codeNoMessage:
		return nil, 0, nil
	case answer.Error != nil:
		return nil, 0, answer.Error
	case answer.Message == nil:
		return nil, 0, errors.New("unreadable answer of the broker: no message")
	}
	if isMark(answer.Message.Headers) {
		return nil, 0, nil
	}
	return answer.Message.Data, answer.Message.Seq, nil
}

// isMark says whether the headers are those of the mark that stays of what was ended, or has run out.
func isMark(headers []byte) bool {
	header, err := nats.DecodeHeadersMsg(headers)
	return err == nil && (header.Get("KV-Operation") != "" || header.Get("Nats-Marker-Reason") != "")
}
