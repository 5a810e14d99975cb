package streams

import (
	"context"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// openHeartbeats opens the bucket of the replicas' heartbeats.
func openHeartbeats(ctx context.Context, nc *nats.Conn) (jetstream.KeyValue, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("barrier: %w", err)
	}
	bucket, err := js.KeyValue(ctx, bucketReplicas)
	if err != nil {
		return nil, fmt.Errorf("barrier: open bucket %s: %w", bucketReplicas, err)
	}
	return bucket, nil
}

// replicas lists those with a heartbeat, among them perhaps some that ended just now. It asks the
// leader of the bucket's stream: the bucket's own listing can end early without a word, a follower
// may not have heard of the newest, and a replica that is left out would not be waited for.
func replicas(ctx context.Context, nc *nats.Conn) ([]string, error) {
	prefix := "$KV." + bucketReplicas + "."
	state, err := AskState(ctx, nc, JetStreamPrefix, bucketStreamName(bucketReplicas), prefix+">")
	if err != nil {
		return nil, err
	}
	ids := make([]string, 0, len(state.State.Subjects))
	for subject := range state.State.Subjects {
		ids = append(ids, strings.TrimPrefix(subject, prefix))
	}
	return ids, nil
}

// ended reports whether a replica's heartbeat has run out or was taken away. The leader is asked: a
// follower may not have heard of a replica that has just begun.
func ended(ctx context.Context, nc *nats.Conn, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, bucketTimeout)
	defer cancel()
	_, revision, err := Newest(ctx, nc, bucketReplicas, id)
	return err == nil && revision == 0
}
