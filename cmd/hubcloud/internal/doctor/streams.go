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
	cloud   func() ([]jetstream.StreamInfo, error)
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
	s.cloud = once(s, func(conns *streams.Conns) ([]jetstream.StreamInfo, error) {
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
	Name streams.Account
	*jetstream.AccountInfo
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
		all = append(all, accountInfo{name, info})
	}
	return all, nil
}

// readStreams returns the streams of an account. After an error they are those that answered.
func readStreams(ctx context.Context, nc *nats.Conn) (all []jetstream.StreamInfo, err error) {
	_, err = jsapi.New(nc).List(ctx, func(infos []jetstream.StreamInfo) (more bool) {
		all = append(all, infos...)
		return true
	})
	return all, err
}

// find returns the stream of a name; false if there is none.
func find(all []jetstream.StreamInfo, name string) (jetstream.StreamInfo, bool) {
	i := slices.IndexFunc(all, func(s jetstream.StreamInfo) bool { return s.Config.Name == name })
	if i < 0 {
		return jetstream.StreamInfo{}, false
	}
	return all[i], true
}

// hubLogList has the hub logs that could be listed in time.
type hubLogList struct {
	logs     []jetstream.StreamInfo
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
				if _, ok := streams.HubOfStream(s.Config.Name); ok {
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
func hubOf(s jetstream.StreamInfo) domain.HubID {
	hub, _ := streams.HubOfStream(s.Config.Name)
	return hub
}
