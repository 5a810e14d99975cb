package survey

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// Account is the use of an account and its limits. A limit of -1 means none.
type Account struct {
	Name                       streams.Account
	Streams, StreamLimit       int64
	StorageBytes, StorageLimit int64
}

// Accounts returns the account CLOUD and those of the shards, in this order.
func Accounts(ctx context.Context, conns *streams.Conns) ([]Account, error) {
	var all []Account
	for i, nc := range append([]*nats.Conn{conns.Cloud}, conns.Shards...) {
		name := streams.AccountCloud
		if i > 0 {
			name = streams.ShardAccount(i - 1)
		}
		js, err := jetstream.New(nc)
		if err != nil {
			return nil, fmt.Errorf("survey: account %s: %w", name, err)
		}
		info, err := js.AccountInfo(ctx)
		if err != nil {
			return nil, fmt.Errorf("survey: account %s: %w", name, err)
		}
		all = append(all, Account{
			Name: name, Streams: int64(info.Streams), StreamLimit: int64(info.Limits.MaxStreams),
			StorageBytes: int64(info.Store), StorageLimit: info.Limits.MaxStore,
		})
	}
	return all, nil
}

// Stream is the state of one stream. A limit of -1 or 0 means none.
type Stream struct {
	Name                   string
	Messages, MessageLimit int64
	Bytes, ByteLimit       int64
	// Oldest and Newest are the times of the first and the last message, zero without messages.
	Oldest, Newest time.Time
	// Last is the sequence of the last message, also when it has expired.
	Last uint64
	// MaxAge is how long messages are kept, 0 for ever.
	MaxAge time.Duration
	// Lost is the number of messages that are unreadable on disk.
	Lost int
	// Replicas is the configured number of copies. Leader and Peers are empty without a cluster.
	Replicas int
	Leader   string
	Peers    []Peer
}

// Streams calls each with the streams of an account, page by page, until each returns enough.
func Streams(ctx context.Context, nc *nats.Conn, each func(page []Stream) (enough bool)) error {
	_, err := jsapi.New(nc).List(ctx, func(infos []jetstream.StreamInfo) (more bool) {
		page := make([]Stream, len(infos))
		for i := range infos {
			page[i] = streamOf(&infos[i])
		}
		return !each(page)
	})
	if err != nil {
		return fmt.Errorf("survey: %w", err)
	}
	return nil
}

func streamOf(info *jetstream.StreamInfo) Stream {
	s := Stream{
		Name: info.Config.Name, Replicas: info.Config.Replicas,
		Messages: int64(info.State.Msgs), MessageLimit: info.Config.MaxMsgs,
		Bytes: int64(info.State.Bytes), ByteLimit: info.Config.MaxBytes,
		Oldest: info.State.FirstTime, Newest: info.State.LastTime,
		Last: info.State.LastSeq, MaxAge: info.Config.MaxAge,
	}
	if info.State.Lost != nil {
		s.Lost = len(info.State.Lost.Msgs)
	}
	if info.Cluster == nil {
		return s
	}
	s.Leader = info.Cluster.Leader
	for _, peer := range info.Cluster.Replicas {
		s.Peers = append(s.Peers, Peer{
			Name: peer.Name, Current: peer.Current, Offline: peer.Offline, Active: peer.Active,
			Lag: peer.Lag,
		})
	}
	return s
}
