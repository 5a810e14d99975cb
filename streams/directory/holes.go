package directory

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// ErrHoles means that stored events are lost. What depends on them cannot be decided: a hub may
// have another owner, or a key may be revoked.
var ErrHoles = errors.New("events of the directory are lost")

// Holes returns the holes of the log.
func (l *Log) Holes(ctx context.Context) ([]jsapi.Hole, error) {
	return l.api.Holes(ctx, streams.DirectoryStream, false)
}

// EncodeLost returns the stored form of the event that stands in the place of a lost one.
func EncodeLost(o domain.Origin, seq uint64) ([]byte, error) {
	encoded, _, err := encode([]domain.Event{domain.Record(o, domain.EventLost{Sequence: seq})})
	if err != nil {
		return nil, err
	}
	return encoded[0], nil
}

// PutBack creates a stream that is gone, on one server, with stored events as its first ones.
func PutBack(ctx context.Context, conns *streams.Conns, events []*nats.Msg) error {
	if _, err := Create(ctx, conns, 1); err != nil {
		return err
	}
	for first := 0; first < len(events); first += jsapi.MaxBatch {
		batch := events[first:min(first+jsapi.MaxBatch, len(events))]
		jsapi.ExpectEnd(batch[0], uint64(first))
		if _, err := jsapi.Append(ctx, conns.Cloud, batch...); err != nil {
			return err
		}
	}
	return nil
}
