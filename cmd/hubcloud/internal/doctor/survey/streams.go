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

// Account is what one account's streams hold, and may hold. A limit of -1 is none.
type Account struct {
	Name                       streams.Account
	Streams, StreamLimit       int64
	StorageBytes, StorageLimit int64
}

// Accounts gives CLOUD and the shards, in that order.
func Accounts(ctx context.Context, conns *streams.Conns) ([]Account, error) {
	var all []Account
	for i, nc := range append([]*nats.Conn{conns.Cloud}, conns.Shards...) {
		name := streams.AccountCloud
		if i > 0 {
			name = streams.ShardAccount(i - 1)
		}
		var said struct {
			Storage int64 `json:"storage"`
			Streams int64 `json:"streams"`
			Limits  struct {
				Storage int64 `json:"max_storage"`
				Streams int64 `json:"max_streams"`
			} `json:"limits"`
			Error *streams.BrokerError `json:"error"`
		}
		if err := ask(ctx, nc, accountInfo, nil, &said); err != nil {
			return nil, fmt.Errorf("survey: ask for the account %s: %w", name, err)
		}
		if said.Error != nil {
			return nil, fmt.Errorf("survey: ask for the account %s: %w", name, said.Error)
		}
		all = append(all, Account{
			Name: name, Streams: said.Streams, StreamLimit: said.Limits.Streams,
			StorageBytes: said.Storage, StorageLimit: said.Limits.Storage,
		})
	}
	return all, nil
}

// Stream is one stream. A limit of -1 or 0 is none.
type Stream struct {
	Name                   string
	Messages, MessageLimit int64
	Bytes, ByteLimit       int64
	// Oldest and Newest are when the first and the last message were stored, zero without any.
	Oldest, Newest time.Time
	// Lost is how many messages were found to be unreadable on the disk.
	Lost int
	// Replicas is how many copies it should have. Leader and Peers are empty for one that has a
	// single copy on a server by itself.
	Replicas int
	Leader   string
	Peers    []Peer
}

// Streams hands over an account's streams, page by page, until there are no more, or each says that
// it has enough.
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

func streamPage(
	ctx context.Context, nc *nats.Conn, offset int,
) (page []Stream, total int, err error) {
	question, err := json.Marshal(struct {
		Offset int `json:"offset"`
	}{offset})
	if err != nil {
		return nil, 0, err
	}
	var said struct {
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
	if err := ask(ctx, nc, streamList, question, &said); err != nil {
		return nil, 0, err
	}
	if said.Error != nil {
		return nil, 0, said.Error
	}
	for _, s := range said.Streams {
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
	return page, said.Total, nil
}

// ask puts a question to JetStream's API and decodes the answer.
func ask(ctx context.Context, nc *nats.Conn, subject string, question []byte, answer any) error {
	msg, err := nc.RequestWithContext(ctx, subject, question)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(msg.Data, answer); err != nil {
		return fmt.Errorf("unreadable answer: %w", err)
	}
	return nil
}
