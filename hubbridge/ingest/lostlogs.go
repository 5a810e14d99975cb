package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// LostLogs returns the hubs that had stored events and whose log the broker no longer has, sorted
// by id. A hub gets a log again when it connects; the events are gone.
func LostLogs(ctx context.Context, conns *streams.Conns) ([]domain.HubID, error) {
	stored, err := hubsWithStoredEvents(ctx, conns)
	if err != nil {
		return nil, fmt.Errorf("lost hub logs: %w", err)
	}
	// The streams are listed after the checkpoints are read: a log created meanwhile is not lost.
	for shard, nc := range conns.Shards {
		names, err := jsapi.New(nc).Names(ctx)
		if err != nil {
			return nil, fmt.Errorf("lost hub logs: shard %d: %w", shard, err)
		}
		for _, name := range names {
			delete(stored, name)
		}
	}
	lost := make([]domain.HubID, 0, len(stored))
	for _, hub := range stored {
		lost = append(lost, hub)
	}
	slices.Sort(lost)
	return lost, nil
}

// hubsWithStoredEvents returns the hubs whose checkpoint accounts for stored events, by the names
// of their streams.
func hubsWithStoredEvents(
	ctx context.Context, conns *streams.Conns,
) (map[string]domain.HubID, error) {
	js, err := jetstream.New(conns.Cloud)
	if err != nil {
		return nil, err
	}
	kv, err := js.KeyValue(ctx, CheckpointBucket)
	if err != nil {
		return nil, err
	}
	stored := map[string]domain.HubID{}
	err = jsapi.Each(ctx, kv, func(entry jetstream.KeyValueEntry) error {
		var c checkpoint
		if err := json.Unmarshal(entry.Value(), &c); err != nil {
			return fmt.Errorf("ingest checkpoint of %s: %w", entry.Key(), err)
		}
		if c.StreamSeq > 0 {
			hub := domain.HubID(entry.Key())
			stored[streams.HubStream(hub)] = hub
		}
		return nil
	})
	return stored, err
}
