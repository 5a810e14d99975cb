package streams

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// heartbeats is the bucket of the replicas' heartbeats.
type heartbeats struct {
	jetstream.KeyValue
	stream jetstream.Stream
}

func openHeartbeats(ctx context.Context, nc *nats.Conn) (heartbeats, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return heartbeats{}, fmt.Errorf("barrier: %w", err)
	}
	kv, err := js.KeyValue(ctx, bucketReplicas)
	if err != nil {
		return heartbeats{}, fmt.Errorf("barrier: open bucket %s: %w", bucketReplicas, err)
	}
	stream, err := js.Stream(ctx, bucketStreamName(bucketReplicas))
	if err != nil {
		return heartbeats{}, fmt.Errorf("barrier: open bucket %s: %w", bucketReplicas, err)
	}
	return heartbeats{kv, stream}, nil
}

// alive lists the replicas with a heartbeat, among them perhaps some that ended just now. It asks the leader of the bucket's stream: the
// bucket's own listing can end early without a word, and a replica left out would not be waited for.
func (h heartbeats) alive(ctx context.Context) ([]string, error) {
	prefix := "$KV." + bucketReplicas + "."
	info, err := h.stream.Info(ctx, jetstream.WithSubjectFilter(prefix+">"))
	if err != nil {
		return nil, err
	}
	ids := make([]string, 0, len(info.State.Subjects))
	for subject := range info.State.Subjects {
		ids = append(ids, strings.TrimPrefix(subject, prefix))
	}
	return ids, nil
}

// ended says whether a replica's heartbeat has run out or was taken away.
func (h heartbeats) ended(ctx context.Context, id string) bool {
	_, err := h.Get(ctx, id)
	return errors.Is(err, jetstream.ErrKeyNotFound)
}
