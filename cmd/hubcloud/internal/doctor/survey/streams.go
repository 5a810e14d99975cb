package survey

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
)

const (
	accountInfo = "$JS.API.INFO"
	streamList  = "$JS.API.STREAM.LIST"
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
		var answer struct {
			Storage int64 `json:"storage"`
			Streams int64 `json:"streams"`
			Limits  struct {
				Storage int64 `json:"max_storage"`
				Streams int64 `json:"max_streams"`
			} `json:"limits"`
			Error *streams.BrokerError `json:"error"`
		}
		if err := ask(ctx, nc, accountInfo, nil, &answer); err != nil {
			return nil, fmt.Errorf("survey: request the account %s: %w", name, err)
		}
		if answer.Error != nil {
			return nil, fmt.Errorf("survey: request the account %s: %w", name, answer.Error)
		}
		all = append(all, Account{
			Name: name, Streams: answer.Streams, StreamLimit: answer.Limits.Streams,
			StorageBytes: answer.Storage, StorageLimit: answer.Limits.Storage,
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
	// Lost is the number of messages that are unreadable on disk.
	Lost int
	// Replicas is the configured number of copies. Leader and Peers are empty without a cluster.
	Replicas int
	Leader   string
	Peers    []Peer
}

// Streams calls each with the streams of an account, page by page, until each returns enough.
func Streams(ctx context.Context, nc *nats.Conn, each func(page []Stream) (enough bool)) error {
	for offset := 0; ; {
		page, total, err := streamPage(ctx, nc, offset)
		if err != nil {
			return fmt.Errorf("survey: list streams: %w", err)
		}
		offset += len(page)
		if each(page) || len(page) == 0 || offset >= total {
			return nil
		}
	}
}

// streamPage returns the streams from an offset on, and the number of all streams.
func streamPage(
	ctx context.Context, nc *nats.Conn, offset int,
) (page []Stream, total int, err error) {
	request, err := json.Marshal(struct {
		Offset int `json:"offset"`
	}{offset})
	if err != nil {
		return nil, 0, err
	}
	var answer struct {
		Total   int `json:"total"`
		Streams []struct {
			Config struct {
				Name     string `json:"name"`
				MaxMsgs  int64  `json:"max_msgs"`
				MaxBytes int64  `json:"max_bytes"`
				Replicas int    `json:"num_replicas"`
			} `json:"config"`
			State struct {
				Messages  int64     `json:"messages"`
				Bytes     int64     `json:"bytes"`
				FirstTime time.Time `json:"first_ts"`
				LastTime  time.Time `json:"last_ts"`
				Lost      *struct {
					Messages []uint64 `json:"msgs"`
				} `json:"lost"`
			} `json:"state"`
			Cluster *struct {
				Leader   string `json:"leader"`
				Replicas []Peer `json:"replicas"`
			} `json:"cluster"`
		} `json:"streams"`
		Error *streams.BrokerError `json:"error"`
	}
	if err := ask(ctx, nc, streamList, request, &answer); err != nil {
		return nil, 0, err
	}
	if answer.Error != nil {
		return nil, 0, answer.Error
	}
	for _, s := range answer.Streams {
		stream := Stream{
			Name: s.Config.Name, Messages: s.State.Messages, MessageLimit: s.Config.MaxMsgs,
			Bytes: s.State.Bytes, ByteLimit: s.Config.MaxBytes,
			Oldest: s.State.FirstTime, Newest: s.State.LastTime, Replicas: s.Config.Replicas,
		}
		if s.State.Lost != nil {
			stream.Lost = len(s.State.Lost.Messages)
		}
		if s.Cluster != nil {
			stream.Leader, stream.Peers = s.Cluster.Leader, s.Cluster.Replicas
		}
		page = append(page, stream)
	}
	return page, answer.Total, nil
}

// ask sends a request to the JetStream API and decodes the answer.
func ask(ctx context.Context, nc *nats.Conn, subject string, request []byte, answer any) error {
	msg, err := nc.RequestWithContext(ctx, subject, request)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(msg.Data, answer); err != nil {
		return fmt.Errorf("decode the answer: %w", err)
	}
	return nil
}
