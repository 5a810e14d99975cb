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
	Retention:         jetstream.LimitsPolicy,
	MaxMsgsPerSubject: 1,
	MaxMsgSize:        1,
}

// sessionStreams are the other streams that a server needs for the MQTT clients of an account, as
// it creates them itself when the first one connects. If the first clients of an account connect to
// several servers of a cluster at once, all create them, and a server that asks for a stream while
// it is being created may get no answer: it keeps its clients waiting for js_api_timeout, and then
// disconnects them for a violation of the protocol. So a cluster has them from the start.
var sessionStreams = []jetstream.StreamConfig{
	{
		Name: "$MQTT_sess", Subjects: []string{"$MQTT.sess.>"},
		Retention: jetstream.LimitsPolicy, MaxMsgsPerSubject: 1,
	},
	{Name: "$MQTT_msgs", Subjects: []string{"$MQTT.msgs.>"}, Retention: jetstream.InterestPolicy},
	{
		Name: "$MQTT_qos2in", Subjects: []string{"$MQTT.qos2.in.>"},
		Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew,
		MaxMsgsPerSubject: 1, DiscardNewPerSubject: true,
	},
	{Name: "$MQTT_out", Subjects: []string{"$MQTT.out.>"}, Retention: jetstream.InterestPolicy},
}

// DeclareMQTTStreams declares retainedStream in every shard, and in a cluster sessionStreams, with
// that many replicas. With one replica, sessionStreams are left to the servers, which have a
// setting of their own for them (stream_replicas). The embedded broker does this by itself. With an
// external broker it must be called before the auth callout is answered for the first time.
//
// The first shard is declared alone, because its request is the first one to JetStream in a run of
// the server. That request makes the server subscribe to responses. A concurrent request that
// overtakes the subscription never gets its response (Account.newServiceReply of nats-server 2.15).
func DeclareMQTTStreams(ctx context.Context, conns *streams.Conns, replicas int) error {
	ctx, cancel := context.WithTimeout(ctx, declareTimeout)
	defer cancel()
	if err := declareMQTTStreams(ctx, conns, 0, replicas); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(declareAtOnce)
	for shard := range conns.Shards[1:] {
		group.Go(func() error { return declareMQTTStreams(ctx, conns, shard+1, replicas) })
	}
	return group.Wait()
}

func declareMQTTStreams(
	ctx context.Context, conns *streams.Conns, shard, replicas int,
) error {
	js, err := jetstream.New(conns.Shards[shard])
	if err == nil {
		err = declareRetained(ctx, js, replicas)
	}
	if conns.Clustered() && replicas > 1 {
		for i := 0; i < len(sessionStreams) && err == nil; i++ {
			_, err = findOrCreate(ctx, js, sessionStreams[i], replicas)
		}
	}
	if err != nil {
		return fmt.Errorf("account %s: %w", streams.ShardAccount(shard), err)
	}
	return nil
}

// findOrCreate returns a stream, which it creates if it is missing. It gets that many replicas.
func findOrCreate(
	ctx context.Context, js jetstream.JetStream, config jetstream.StreamConfig, replicas int,
) (stream jetstream.Stream, err error) {
	config.Storage, config.Replicas = jetstream.FileStorage, replicas
	err = jsapi.SetUp(ctx, func(ctx context.Context) error {
		stream, err = js.Stream(ctx, config.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			stream, err = js.CreateStream(ctx, config)
		}
		if err != nil {
			return err
		}
		if found := stream.CachedInfo().Config; found.Replicas != replicas {
			found.Replicas = replicas
			stream, err = js.UpdateStream(ctx, found)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", config.Name, err)
	}
	return stream, nil
}

func declareRetained(ctx context.Context, js jetstream.JetStream, replicas int) error {
	stream, err := findOrCreate(ctx, js, retainedStream, replicas)
	if err != nil {
		return err
	}
	if found := stream.CachedInfo().Config; found.MaxMsgSize != retainedStream.MaxMsgSize {
		return fmt.Errorf(
			"stream %s: max_msg_size: must be %d, got %d: another program created the stream",
			found.Name, retainedStream.MaxMsgSize, found.MaxMsgSize,
		)
	}
	return nil
}
