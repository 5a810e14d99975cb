package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
)

const (
	// Every server answers these requests: with its statistics, and with its health.
	pingServers = "$SYS.REQ.SERVER.PING.STATSZ"
	pingHealth  = "$SYS.REQ.SERVER.PING.HEALTHZ"
	// nextTimeout is how long to wait for the next answer after the last one. Servers answer
	// concurrently, within milliseconds.
	nextTimeout = 400 * time.Millisecond
)

// serverInfo is the used part of a server's answer to pingServers.
type serverInfo struct {
	serverName  `json:"server"`
	serverStats `json:"statsz"`
	// Before and After are this machine's clock before the request and after the answer.
	Before, After time.Time `json:"-"`
}

type serverName struct {
	Name string `json:"name"`
	// Cluster is the name of the server's cluster, "" for a single server.
	Cluster string `json:"cluster"`
	Version string `json:"ver"`
	// Time is the server's clock when it answered.
	Time time.Time `json:"time"`
}

type serverStats struct {
	Started time.Time `json:"start"`
	// SlowConsumers is the number of connections that the server has cut since its start because
	// they did not read.
	SlowConsumers int64 `json:"slow_consumers"`
	// JetStream is nil on a server without streams.
	JetStream *storeInfo `json:"jetstream"`
}

// storeInfo is the storage of a server.
type storeInfo struct {
	Config struct {
		// MaxStorage is the limit in bytes, 0 or less for none.
		MaxStorage int64 `json:"max_storage"`
		// SyncAlways reports whether the server syncs each write before it acknowledges the write.
		// Otherwise it syncs once per SyncInterval.
		SyncAlways   bool          `json:"sync_always"`
		SyncInterval time.Duration `json:"sync_interval"`
	} `json:"config"`
	Stats struct {
		Storage int64 `json:"storage"`
	} `json:"stats"`
	// Meta is the cluster as the server sees it, nil for a single server.
	Meta *metaInfo `json:"meta"`
}

// metaInfo is the group of servers that assigns streams in a cluster.
type metaInfo struct {
	// Leader is the name of the leading server, "" for none.
	Leader string     `json:"leader"`
	Size   int        `json:"cluster_size"`
	Peers  []peerInfo `json:"replicas"`
}

// peerInfo is a server of a group, or one with a copy of a stream, as the leader sees it.
type peerInfo struct {
	Name    string `json:"name"`
	Current bool   `json:"current"`
	Offline bool   `json:"offline"`
}

// readServers returns the servers that answer, sorted by name. When none answers, the error is
// nats.ErrTimeout or the error of ctx.
func readServers(ctx context.Context, sys *nats.Conn) ([]serverInfo, error) {
	var all []serverInfo
	before := time.Now()
	err := scatter(ctx, sys, pingServers, nil, func(data []byte) (enough bool, err error) {
		server := serverInfo{Before: before, After: time.Now()}
		if err := json.Unmarshal(data, &server); err != nil {
			return false, fmt.Errorf("decode the statistics of a server: %w", err)
		}
		all = append(all, server)
		return server.Cluster == "" || len(all) == expected(all), nil
	})
	if err != nil {
		return nil, fmt.Errorf("request the statistics of the broker's servers: %w", err)
	}
	slices.SortFunc(all, func(a, b serverInfo) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// expected returns the size of the cluster, 0 if no server knows it.
func expected(all []serverInfo) int {
	for _, s := range all {
		if s.JetStream != nil && s.JetStream.Meta != nil {
			return s.JetStream.Meta.Size
		}
	}
	return 0
}

// healthAnswer is the used part of a server's answer to pingHealth.
type healthAnswer struct {
	Server struct {
		Name string `json:"name"`
	} `json:"server"`
	Data struct {
		Error  string `json:"error"`
		Errors []struct {
			Error string `json:"error"`
		} `json:"errors"`
	} `json:"data"`
}

// readProblems returns the problems that servers report about themselves and their copies of
// streams, by the server's name. Healthy servers are not in the result. count is the number of
// answers to wait for.
func readProblems(ctx context.Context, sys *nats.Conn, count int) (map[string][]string, error) {
	problems := map[string][]string{}
	answers := 0
	receive := func(data []byte) (enough bool, err error) {
		var answer healthAnswer
		if err := json.Unmarshal(data, &answer); err != nil {
			return false, fmt.Errorf("decode the health of a server: %w", err)
		}
		name := answer.Server.Name
		for _, e := range answer.Data.Errors {
			problems[name] = append(problems[name], e.Error)
		}
		if answer.Data.Error != "" {
			problems[name] = append(problems[name], answer.Data.Error)
		}
		answers++
		return answers == count, nil
	}
	if err := scatter(ctx, sys, pingHealth, []byte(`{"details":true}`), receive); err != nil {
		return nil, fmt.Errorf("request the health of the broker's servers: %w", err)
	}
	return problems, nil
}

// scatter sends a request to all servers and calls receive with each answer, until receive returns
// enough, no further answer comes within nextTimeout, or ctx ends. No answer at all is an error.
func scatter(
	ctx context.Context, nc *nats.Conn, subject string, request []byte,
	receive func(data []byte) (enough bool, err error),
) error {
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return err
	}
	defer streams.Unsubscribe(sub)
	if err := nc.PublishRequest(subject, inbox, request); err != nil {
		return err
	}
	for wait := ctx; ; {
		msg, err := sub.NextMsgWithContext(wait)
		timedOut := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
		switch {
		case timedOut && wait != ctx:
			return nil // all servers that can answer have answered
		case errors.Is(err, nats.ErrNoResponders):
			return err
		case err != nil:
			return fmt.Errorf("no answer: %w", err)
		}
		enough, err := receive(msg.Data)
		if err != nil || enough {
			return err
		}
		var cancel context.CancelFunc
		wait, cancel = context.WithTimeout(ctx, nextTimeout)
		defer cancel() // one per server
	}
}
