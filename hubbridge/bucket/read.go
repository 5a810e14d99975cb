package bucket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
)

// Record is what a bucket holds under a key.
type Record struct {
	Key      string
	Revision uint64
	Value    []byte
	// Deleted reports that the record is the mark of a key that was deleted or has expired.
	Deleted bool
}

// Read returns the record of a key as the leader of the bucket's stream has it, and whether there
// is one.
func (b Bucket) Read(ctx context.Context, key string) (Record, bool, error) {
	return b.read(ctx, struct {
		LastFor string `json:"last_by_subj"`
	}{b.subject(key)})
}

// Next returns the record with the lowest revision from a given one (at least 1) on, as the leader
// of the bucket's stream has it, and whether there is one.
func (b Bucket) Next(ctx context.Context, from uint64) (Record, bool, error) {
	return b.read(ctx, struct {
		From    uint64 `json:"seq"`
		NextFor string `json:"next_by_subj"`
	}{from, b.subject(">")})
}

// All returns the record of every key, as the leader of the bucket's stream has them, in the order
// of their revisions. It asks once per record, so it is for small buckets. A key that is written
// meanwhile is returned as before or as after the write.
func (b Bucket) All(ctx context.Context) ([]Record, error) {
	found := map[string]int{}
	var all []Record
	for from := uint64(1); ; {
		record, ok, err := b.Next(ctx, from)
		if err != nil {
			return nil, err
		}
		if !ok {
			return all, nil
		}
		if i, seen := found[record.Key]; seen {
			all[i] = record
		} else {
			found[record.Key] = len(all)
			all = append(all, record)
		}
		from = record.Revision + 1
	}
}

// Headers by which a message of a bucket says that it stands for no value.
const (
	headerOperation    = "KV-Operation"
	headerMarkerReason = "Nats-Marker-Reason"
)

func (b Bucket) read(ctx context.Context, question any) (Record, bool, error) {
	text, err := json.Marshal(question)
	if err != nil {
		return Record{}, false, fmt.Errorf("bucket %s: %w", b.name, err)
	}
	text, err = streams.Ask(ctx, b.nc, "$JS.API.STREAM.MSG.GET.KV_"+b.name, text)
	if err != nil {
		return Record{}, false, fmt.Errorf("bucket %s: read: %w", b.name, err)
	}
	var answer struct {
		Error   *streams.BrokerError `json:"error"`
		Message *struct {
			Subject string `json:"subject"`
			Seq     uint64 `json:"seq"`
			Header  []byte `json:"hdrs"`
			Data    []byte `json:"data"`
		} `json:"message"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return Record{}, false, fmt.Errorf("bucket %s: read: unreadable answer: %w", b.name, err)
	}
	switch {
	case answer.Error != nil && answer.Error.Code == codeNoMessage:
		return Record{}, false, nil
	case answer.Error != nil:
		return Record{}, false, fmt.Errorf("bucket %s: read: %w", b.name, answer.Error)
	case answer.Message == nil || len(answer.Message.Subject) <= len(b.subject("")):
		return Record{}, false, fmt.Errorf(
			"bucket %s: read: %w", b.name, errors.New("unreadable answer: no message"),
		)
	}
	m := answer.Message
	record := Record{Key: m.Subject[len(b.subject("")):], Revision: m.Seq, Value: m.Data}
	if len(m.Header) > 0 {
		header, err := nats.DecodeHeadersMsg(m.Header)
		if err != nil {
			return Record{}, false, fmt.Errorf(
				"bucket %s: read %s: unreadable header: %w", b.name, record.Key, err,
			)
		}
		record.Deleted = header.Get(headerOperation) != "" || header.Get(headerMarkerReason) != ""
	}
	return record, true, nil
}
