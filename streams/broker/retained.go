package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"hubcloud/streams"
)

const (
	// declareAtOnce is how many shards are looked after side by side.
	declareAtOnce = 8
	// declareTimeout bounds it all. Making a stream waits for the disk, which may be busy with a
	// whole service that starts.
	declareTimeout = time.Minute
)

// retainedStream is where the server keeps retained messages of MQTT clients. It makes the stream
// itself, without limits, when an account's first MQTT client comes, and takes one that is there.
//
// A hub may publish below `response/`, and every topic there could hold a retained message for
// ever. The hub link has none; so the stream is made here first, and takes no message of more than
// one byte: retaining fails, and the message itself is delivered as ever.
var retainedStream = jetstream.StreamConfig{
	Name:              "$MQTT_rmsgs",
	Description:       "takes nothing: the hub link has no retained messages",
	Subjects:          []string{"$MQTT.rmsgs.>"},
	Storage:           jetstream.FileStorage,
	Retention:         jetstream.LimitsPolicy,
	MaxMsgsPerSubject: 1,
	MaxMsgSize:        1,
}

// RefuseRetained declares retainedStream in every shard, with as many replicas on the broker. The
// embedded broker does so by itself; with a broker of one's own it is due before the auth callout
// is answered for the first time.
//
// The first shard goes alone, since these are the first requests to JetStream that the server gets
// in this run. With its first request the server subscribes to the answers of all; one that
// overtakes it then is answered where nobody listens yet, and its sender waits in vain
// (Account.newServiceReply of nats-server 2.15). Whoever sends a request after Start comes after
// that.
func RefuseRetained(ctx context.Context, conns *streams.Conns, replicas int) error {
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
		err = streams.SetUp(
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
			"takes messages of %d bytes, where %d is declared: it is not this service's",
			found.MaxMsgSize, retainedStream.MaxMsgSize,
		)
	}
	if found.Replicas != replicas {
		found.Replicas = replicas
		_, err = js.UpdateStream(ctx, found)
	}
	return err
}
