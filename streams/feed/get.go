package feed

import (
	"context"
	"errors"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

const (
	// maxGets is how many reads of history a shard's connection does at once.
	maxGets = 16
	// maxGet is the most messages of one direct get, and maxGetBytes about the most bytes.
	// loadBytes is about the most bytes of a direct get for readers: times the loads at once, it
	// bounds the memory for messages on their way to them.
	maxGet      = 512
	maxGetBytes = 1 << 20
	loadBytes   = 256 << 10
	// getTimeout bounds one direct get.
	getTimeout = 3 * time.Second
)

// get sends one direct get to the hub's stream and returns its messages.
func (s *shard) get(
	ctx context.Context, hub domain.HubID, r jsapi.BatchRequest,
) (messages []stored, err error) {
	s.logs.metrics.directGets.Inc()
	r.Stream = streams.HubStream(hub)
	return getStored(ctx, s.reads, r)
}

// getStored reads one batch of messages. A hub without a stream has none.
func getStored(
	ctx context.Context, from *jsapi.BatchPool, r jsapi.BatchRequest,
) (messages []stored, err error) {
	ctx, cancel := context.WithTimeout(ctx, getTimeout)
	defer cancel()
	found, err := from.Get(ctx, r)
	if errors.Is(err, jsapi.ErrNoStream) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	messages = make([]stored, len(found))
	for i, m := range found {
		if messages[i], err = parseStored(m.Sequence, m.Header, m.Data); err != nil {
			return nil, err
		}
	}
	return messages, nil
}
