package doctor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// listTimeout bounds the list of hub logs. With tens of thousands of logs the list is incomplete.
const listTimeout = 2500 * time.Millisecond

// survey reads the state of the broker: its servers over the system account, its accounts and
// streams over the JetStream API. It reads each thing once, at the first call, and changes nothing.
// Results may lack what did not answer in time, and be some seconds old; on the minority side of a
// network partition they have the age of the partition.
type survey struct {
	conns    func() (*streams.Conns, error)
	servers  func() ([]serverInfo, error)
	accounts func() ([]accountInfo, error)
	// cloud are the streams of the account CLOUD.
	cloud   func() ([]streamInfo, error)
	hubLogs func() (hubLogList, error)
}

func newSurvey(ctx context.Context, connect func() (*streams.Conns, error)) survey {
	s := survey{conns: connect}
	s.servers = once(s, func(conns *streams.Conns) ([]serverInfo, error) {
		servers, err := readServers(ctx, conns.Sys)
		if err != nil || conns.CloudSys == conns.Sys {
			return servers, err
		}
		durable, err := readServers(ctx, conns.CloudSys)
		return append(servers, durable...), err
	})
	s.accounts = once(s, func(conns *streams.Conns) ([]accountInfo, error) {
		return readAccounts(ctx, conns)
	})
	s.cloud = once(s, func(conns *streams.Conns) ([]streamInfo, error) {
		return readStreams(ctx, conns.Cloud)
	})
	s.hubLogs = once(s, func(conns *streams.Conns) (hubLogList, error) {
		return listHubLogs(ctx, conns), nil
	})
	return s
}

// once returns a function that calls read once, with the connection to the broker.
func once[T any](s survey, read func(*streams.Conns) (T, error)) func() (T, error) {
	return sync.OnceValues(func() (found T, err error) {
		conns, err := s.conns()
		if err != nil {
			return found, err
		}
		return read(conns)
	})
}

// accountInfo is the use of an account and its limits. A limit of -1 means none.
type accountInfo struct {
	Name                       streams.Account
	Streams, StreamLimit       int64
	StorageBytes, StorageLimit int64
}

// readAccounts returns the account CLOUD and the accounts of the shards, in this order.
func readAccounts(ctx context.Context, conns *streams.Conns) ([]accountInfo, error) {
	var all []accountInfo
	for i, nc := range append([]*nats.Conn{conns.Cloud}, conns.Shards...) {
		name := streams.AccountCloud
		if i > 0 {
			name = streams.ShardAccount(i - 1)
		}
		js, err := jetstream.New(nc)
		if err != nil {
			return nil, fmt.Errorf("account %s: %w", name, err)
		}
		info, err := js.AccountInfo(ctx)
		if err != nil {
			return nil, fmt.Errorf("account %s: %w", name, err)
		}
		all = append(all, accountInfo{
			Name: name, Streams: int64(info.Streams), StreamLimit: int64(info.Limits.MaxStreams),
			StorageBytes: int64(info.Store), StorageLimit: info.Limits.MaxStore,
		})
	}
	return all, nil
}

// streamInfo is the state of one stream. A limit of -1 or 0 means none.
type streamInfo struct {
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
	Peers    []peerInfo
}

// readStreams returns the streams of an account. After an error they are those that answered.
func readStreams(ctx context.Context, nc *nats.Conn) (all []streamInfo, err error) {
	_, err = jsapi.New(nc).List(ctx, func(infos []jetstream.StreamInfo) (more bool) {
		for i := range infos {
			all = append(all, streamOf(&infos[i]))
		}
		return true
	})
	return all, err
}

func streamOf(info *jetstream.StreamInfo) streamInfo {
	s := streamInfo{
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
		s.Peers = append(
			s.Peers, peerInfo{Name: peer.Name, Current: peer.Current, Offline: peer.Offline},
		)
	}
	return s
}

// find returns the stream of a name; false if there is none.
func find(all []streamInfo, name string) (streamInfo, bool) {
	i := slices.IndexFunc(all, func(s streamInfo) bool { return s.Name == name })
	if i < 0 {
		return streamInfo{}, false
	}
	return all[i], true
}

// hubLogList has the hub logs that could be listed in time.
type hubLogList struct {
	logs     []streamInfo
	complete bool
}

// listHubLogs lists the hub logs of all accounts concurrently, for at most listTimeout.
func listHubLogs(ctx context.Context, conns *streams.Conns) hubLogList {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list := hubLogList{complete: true}
	var mu sync.Mutex
	var listing sync.WaitGroup
	for _, nc := range conns.Shards {
		listing.Go(func() {
			all, err := readStreams(ctx, nc)
			mu.Lock()
			defer mu.Unlock()
			for _, s := range all {
				// The broker keeps streams of its own for MQTT.
				if _, ok := streams.HubOfStream(s.Name); ok {
					list.logs = append(list.logs, s)
				}
			}
			list.complete = list.complete && err == nil
		})
	}
	listing.Wait()
	return list
}

// hubOf returns the hub of the stream of a hub log.
func hubOf(s streamInfo) domain.HubID {
	hub, _ := streams.HubOfStream(s.Name)
	return hub
}
