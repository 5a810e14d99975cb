package directory

import (
	"context"
	"errors"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// ErrHoles means that stored events are lost. What depends on them cannot be decided: a hub may have
// another owner, or a key may be revoked.
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
