package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

const (
	// replicationTimeout bounds how long the replicas of a restored stream may take to catch up,
	// and replicationPause is the pause between two checks.
	replicationTimeout = 10 * time.Minute
	replicationPause   = 50 * time.Millisecond
)

// restoreStream restores a stream from a snapshot, with that many replicas. sent is called with
// the size of each accepted chunk. The error is jsapi.ErrStreamExists if the account has a stream
// of that name.
func restoreStream(
	ctx context.Context, nc *nats.Conn, stream Stream, replicas int, r io.Reader, sent func(int64),
) error {
	config, err := configFor(stream.Config, replicas)
	if err != nil {
		return err
	}
	state, err := jsapi.New(nc).Restore(ctx, stream.Name, jsapi.SnapshotState{
		Config: config,
		State: jetstream.StreamState{
			Msgs: stream.Messages, FirstSeq: stream.First, LastSeq: stream.Last,
		},
	}, r, sent)
	if err == nil && state.LastSeq != stream.Last {
		err = fmt.Errorf(
			"the restored stream ends at sequence %d, want %d", state.LastSeq, stream.Last,
		)
	}
	if err != nil || replicas <= 1 {
		return err
	}
	return awaitReplicas(ctx, nc, stream.Name)
}

// awaitReplicas returns once every replica has the whole stream. A snapshot is restored to one
// server: if it were lost before the others have caught up, they could not elect a leader.
func awaitReplicas(ctx context.Context, nc *nats.Conn, stream string) error {
	ctx, cancel := context.WithTimeout(ctx, replicationTimeout)
	defer cancel()
	for {
		info, err := jsapi.New(nc).Info(ctx, stream)
		if err == nil && isReplicated(info.Cluster) {
			return nil
		}
		if err != nil && !errors.Is(err, jsapi.ErrNoLeader) {
			return err
		}
		if !streams.Sleep(ctx, replicationPause) {
			return fmt.Errorf("wait for the replicas of stream %s: %w", stream, ctx.Err())
		}
	}
}

// isReplicated reports whether every replica of a stream has the whole stream.
func isReplicated(group *jetstream.ClusterInfo) bool {
	if group == nil || len(group.Replicas) == 0 {
		return false
	}
	for _, peer := range group.Replicas {
		if !peer.Current || peer.Lag > 0 {
			return false
		}
	}
	return true
}

// configFor returns the configuration of a stream with another number of replicas, on any servers.
func configFor(saved json.RawMessage, replicas int) (json.RawMessage, error) {
	decoder := json.NewDecoder(strings.NewReader(string(saved)))
	decoder.UseNumber() // durations have more digits than a float64 holds
	config := map[string]any{}
	if err := decoder.Decode(&config); err != nil {
		return nil, fmt.Errorf("%w: unreadable stream configuration: %w", ErrDamaged, err)
	}
	config["num_replicas"] = replicas
	delete(config, "placement")
	delete(config, "metadata") // written by the broker itself
	return json.Marshal(config)
}
