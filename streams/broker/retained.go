package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"hubcloud/streams"
)

// declareAtOnce is how many shards are looked after side by side.
const declareAtOnce = 8

// retainedStream is where the server keeps retained messages of MQTT clients. It makes the stream itself, without limits, when an account's
// first MQTT client comes, and takes one that is there.
//
// A hub may publish below `response/`, and every topic there could hold a retained message for ever. The hub link has none; so the stream is
// made here first, and takes no message of more than one byte: retaining fails, and the message itself is delivered as ever.
var retainedStream = jetstream.StreamConfig{
	Name:              "$MQTT_rmsgs",
	Description:       "takes nothing: the hub link has no retained messages",
	Subjects:          []string{"$MQTT.rmsgs.>"},
	Storage:           jetstream.FileStorage,
	Retention:         jetstream.LimitsPolicy,
	MaxMsgsPerSubject: 1,
	MaxMsgSize:        1,
	Replicas:          1,
}

// refuseRetained declares retainedStream in every shard.
func refuseRetained(ctx context.Context, conns *streams.Conns) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(declareAtOnce)
	for i, nc := range conns.Shards {
		group.Go(func() error {
			if err := declareRetained(ctx, nc); err != nil {
				return fmt.Errorf("account %s: stream %s: %w", streams.ShardAccount(i), retainedStream.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func declareRetained(ctx context.Context, nc *nats.Conn) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	stream, err := js.Stream(ctx, retainedStream.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = js.CreateStream(ctx, retainedStream)
		return err
	}
	if err != nil {
		return err
	}
	if found := stream.CachedInfo().Config.MaxMsgSize; found != retainedStream.MaxMsgSize {
		return fmt.Errorf("takes messages of %d bytes, where %d is declared: it is not this service's", found, retainedStream.MaxMsgSize)
	}
	return nil
}
