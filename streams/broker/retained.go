package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

const (
	// declareAtOnce is the number of shards that are handled concurrently.
	declareAtOnce = 8
	// declareTimeout limits the time for all shards. Creating a stream waits for the disk, which
	// may be busy during a start.
	declareTimeout = time.Minute
)

// retainedStream is the stream in which the server keeps retained messages of MQTT clients. Left to
// itself, the server creates it without limits when an account's first MQTT client connects, and a
// hub could fill the disk: it may publish to any topic below `response/`, and each could have a
// retained message. The hub protocol does not use retained messages. The stream is therefore
// created here with a message limit of one byte. Retaining a message then fails, and the message
// itself is still delivered.
var retainedStream = jetstream.StreamConfig{
	Name:              "$MQTT_rmsgs",
	Description:       "takes nothing: the hub link has no retained messages",
	Subjects:          []string{"$MQTT.rmsgs.>"},
	Storage:           jetstream.FileStorage,
	Retention:         jetstream.LimitsPolicy,
	MaxMsgsPerSubject: 1,
	MaxMsgSize:        1,
}

// DisableRetained declares retainedStream in every shard, with that many replicas. The embedded
// broker does this by itself. With an external broker it must be called before the auth callout is
// answered for the first time.
//
// The first shard is declared alone, because its request is the first one to JetStream in a run of
// the server. That request makes the server subscribe to responses. A concurrent request that
// overtakes the subscription never gets its response (Account.newServiceReply of nats-server 2.15).
func DisableRetained(ctx context.Context, conns *streams.Conns, replicas int) error {
	ctx, cancel := context.WithTimeout(ctx, declareTimeout)
	defer cancel()
	if err := declareRetained(ctx, conns, 0, replicas); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(declareAtOnce)
	for shard := range conns.Shards[1:] {
		group.Go(func() error { return declareRetained(ctx, conns, shard+1, replicas) })
	}
	return group.Wait()
}

func declareRetained(ctx context.Context, conns *streams.Conns, shard, replicas int) error {
	js, err := jetstream.New(conns.Shards[shard])
	if err == nil {
		err = jsapi.SetUp(
			ctx, func(ctx context.Context) error { return createRetained(ctx, js, replicas) },
		)
	}
	if err != nil {
		return fmt.Errorf(
			"account %s: stream %s: %w", streams.ShardAccount(shard), retainedStream.Name, err,
		)
	}
	return nil
}

func createRetained(ctx context.Context, js jetstream.JetStream, replicas int) error {
	stream, err := js.Stream(ctx, retainedStream.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		made := retainedStream
		made.Replicas = replicas
		_, err = js.CreateStream(ctx, made)
		return err
	}
	if err != nil {
		return err
	}
	found := stream.CachedInfo().Config
	if found.MaxMsgSize != retainedStream.MaxMsgSize {
		return fmt.Errorf(
			"max_msg_size: must be %[2]d, got %[1]d: another program created the stream",
			found.MaxMsgSize, retainedStream.MaxMsgSize,
		)
	}
	if found.Replicas != replicas {
		found.Replicas = replicas
		_, err = js.UpdateStream(ctx, found)
	}
	return err
}
