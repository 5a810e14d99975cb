package survey

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// pingServers asks every server for its figures, pingHealth whether all that it should hold is
	// there and current.
	pingServers = "$SYS.REQ.SERVER.PING.STATSZ"
	pingHealth  = "$SYS.REQ.SERVER.PING.HEALTHZ"
	// quiet is how long the next server may take to answer after the last: servers answer side by
	// side, in milliseconds.
	quiet = 400 * time.Millisecond
)

// Server is one server of the broker.
type Server struct {
	ID, Name, Version string
	// Cluster names the cluster that it is in, "" for a server by itself.
	Cluster string
	// Time is what its clock said when it answered; Asked and Heard are what the clock here said
	// before and after.
	Time, Asked, Heard time.Time
	Started            time.Time
	// Connections are those open now, SlowConsumers those cut off since it started because they did
	// not read.
	Connections, SlowConsumers int64
	MemoryBytes                int64
	// JetStream is nil on a server that keeps no streams.
	JetStream *JetStream
}

// JetStream is what a server keeps, and may keep.
type JetStream struct {
	StorageBytes, StorageLimit int64
	// SyncAlways says that it syncs before it acknowledges, SyncInterval how often it does
	// otherwise.
	SyncAlways   bool
	SyncInterval time.Duration
	// Meta is how it sees its cluster, nil for a server by itself.
	Meta *Meta
}

// Meta is the group that rules over the streams of a cluster.
type Meta struct {
	// Leader is the name of the server that leads it, "" while there is none.
	Leader string
	Size   int
	Peers  []Peer
}

// Peer is a server of a group, or one that carries a copy of a stream, as its leader sees it.
type Peer struct {
	Name    string        `json:"name"`
	Current bool          `json:"current"`
	Offline bool          `json:"offline"`
	Active  time.Duration `json:"active"`
	Lag     uint64        `json:"lag"`
}

// Servers gives every server that answers, by name. Without any the error is nats.ErrTimeout, or
// ctx's.
func Servers(ctx context.Context, sys *nats.Conn) ([]Server, error) {
	var all []Server
	asked := time.Now()
	err := scatter(ctx, sys, pingServers, nil, func(data []byte) (enough bool, err error) {
		var said statistics
		if err := json.Unmarshal(data, &said); err != nil {
			return false, fmt.Errorf("unreadable figures of a server: %w", err)
		}
		server := said.server()
		server.Asked, server.Heard = asked, time.Now()
		all = append(all, server)
		return server.Cluster == "" || len(all) == expected(all), nil
	})
	if err != nil {
		return nil, fmt.Errorf("survey: ask the broker's servers: %w", err)
	}
	slices.SortFunc(all, func(a, b Server) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// expected is how many servers the cluster has, as far as one of them says; 0 when none does.
func expected(all []Server) int {
	for _, s := range all {
		if s.JetStream != nil && s.JetStream.Meta != nil {
			return s.JetStream.Meta.Size
		}
	}
	return 0
}

// statistics is what a server says, as far as it is read here.
type statistics struct {
	Server struct {
		ID      string    `json:"id"`
		Name    string    `json:"name"`
		Cluster string    `json:"cluster"`
		Version string    `json:"ver"`
		Time    time.Time `json:"time"`
	} `json:"server"`
	Stats struct {
		Start         time.Time `json:"start"`
		Memory        int64     `json:"mem"`
		Connections   int64     `json:"connections"`
		SlowConsumers int64     `json:"slow_consumers"`
		JetStream     *struct {
			Config struct {
				MaxStorage   int64         `json:"max_storage"`
				SyncAlways   bool          `json:"sync_always"`
				SyncInterval time.Duration `json:"sync_interval"`
			} `json:"config"`
			Stats struct {
				Storage int64 `json:"storage"`
			} `json:"stats"`
			Meta *struct {
				Leader   string `json:"leader"`
				Size     int    `json:"cluster_size"`
				Replicas []Peer `json:"replicas"`
			} `json:"meta"`
		} `json:"jetstream"`
	} `json:"statsz"`
}

func (s statistics) server() Server {
	server := Server{
		ID: s.Server.ID, Name: s.Server.Name, Version: s.Server.Version, Cluster: s.Server.Cluster,
		Time:    s.Server.Time,
		Started: s.Stats.Start, Connections: s.Stats.Connections,
		SlowConsumers: s.Stats.SlowConsumers, MemoryBytes: s.Stats.Memory,
	}
	if js := s.Stats.JetStream; js != nil {
		server.JetStream = &JetStream{
			StorageBytes: js.Stats.Storage, StorageLimit: js.Config.MaxStorage,
			SyncAlways: js.Config.SyncAlways, SyncInterval: js.Config.SyncInterval,
		}
		if js.Meta != nil {
			server.JetStream.Meta = &Meta{
				Leader: js.Meta.Leader,
				Size:   js.Meta.Size,
				Peers:  js.Meta.Replicas,
			}
		}
	}
	return server
}

// Ailments gives what servers say is not well with them or with their copies of streams, a line
// each, by the server's name; those that are well say nothing. count is how many servers were to
// answer.
func Ailments(ctx context.Context, sys *nats.Conn, count int) (map[string][]string, error) {
	ailments := map[string][]string{}
	heard := 0
	err := scatter(
		ctx,
		sys,
		pingHealth,
		[]byte(`{"details":true}`),
		func(data []byte) (enough bool, err error) {
			var said struct {
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
			if err := json.Unmarshal(data, &said); err != nil {
				return false, fmt.Errorf("unreadable health of a server: %w", err)
			}
			for _, e := range said.Data.Errors {
				ailments[said.Server.Name] = append(ailments[said.Server.Name], e.Error)
			}
			if said.Data.Error != "" {
				ailments[said.Server.Name] = append(ailments[said.Server.Name], said.Data.Error)
			}
			heard++
			return heard == count, nil
		},
	)
	if err != nil {
		return nil, fmt.Errorf("survey: ask the broker's servers whether they are well: %w", err)
	}
	return ailments, nil
}

// scatter puts a question to all servers and hands over their answers until one is enough, none has
// come for a while, or ctx ends. It fails when there is no answer at all.
func scatter(
	ctx context.Context, nc *nats.Conn, subject string, question []byte,
	take func(data []byte) (enough bool, err error),
) error {
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only with the connection
	if err := nc.PublishRequest(subject, inbox, question); err != nil {
		return err
	}
	for wait := ctx; ; {
		msg, err := sub.NextMsgWithContext(wait)
		switch {
		case err != nil && wait != ctx && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
			return nil // those that answer have answered
		case errors.Is(err, nats.ErrNoResponders):
			return err
		case err != nil:
			return fmt.Errorf("no answer: %w", err)
		}
		enough, err := take(msg.Data)
		if err != nil || enough {
			return err
		}
		var cancel context.CancelFunc
		wait, cancel = context.WithTimeout(ctx, quiet)
		defer cancel() // as many as there are servers
	}
}
