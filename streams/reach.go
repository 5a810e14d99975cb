package streams

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"
)

const (
	// reachEvery is how often each connection, and in a cluster each server, is asked for a sign of
	// life.
	reachEvery = 500 * time.Millisecond
	// reachSilence is how long a connection or a server may be silent until it counts as out of
	// reach. Streams on a replica that lost the broker end within three seconds.
	reachSilence = 2 * time.Second
	// reachLeave is how long a connection may be silent, or lead to a server that is cut off from
	// the others, until it is made anew, to another server if there is one. reachAgain is the least
	// time between two such attempts.
	reachLeave = 4 * time.Second
	reachAgain = 10 * time.Second
	// pingServers has every server of the broker say what it sees of its cluster.
	pingServers = "$SYS.REQ.SERVER.PING.STATSZ"
)

// Reach watches whether this process reaches the broker: whether each of its connections answers,
// and whether, in a cluster, the servers that it reaches are a majority. The client library notices
// a dead connection after half a minute, and never that the server at its other end is cut off from
// the rest.
type Reach struct {
	sys   *nats.Conn
	cloud *nats.Conn
	all   []*nats.Conn
	log   *slog.Logger

	mu    sync.Mutex
	heard map[*nats.Conn]time.Time
	// server is the server at the other end of each connection, "" while there is none. Nobody who
	// judges asks the connection itself: a write that the network does not take holds up everybody
	// who does.
	server map[*nats.Conn]string
	// left is when a connection was last made anew.
	left map[*nats.Conn]time.Time
	// servers holds when each server of a cluster was heard, by name, and members those of them
	// that keep streams; size is how many of the latter the cluster has.
	servers, members map[string]time.Time
	size             int
	// minority is since when fewer than a majority were heard; zero while there are enough.
	minority time.Time
}

// NewReach returns a Reach for connections to one broker. All count as alive until Run has asked.
func NewReach(log *slog.Logger, first *Conns, more ...*Conns) *Reach {
	r := &Reach{
		sys: first.Sys, cloud: first.Cloud, log: log,
		heard: map[*nats.Conn]time.Time{}, server: map[*nats.Conn]string{},
		left:    map[*nats.Conn]time.Time{},
		servers: map[string]time.Time{}, members: map[string]time.Time{},
	}
	for _, conns := range append([]*Conns{first}, more...) {
		for _, nc := range append([]*nats.Conn{conns.Sys, conns.Cloud}, conns.Shards...) {
			r.all = append(r.all, nc)
			r.heard[nc], r.server[nc] = time.Now(), nc.ConnectedServerName()
		}
	}
	return r
}

// Run asks until ctx ends, and returns ctx's error.
func (r *Reach) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, nc := range r.all {
		group.Go(func() error { return r.ping(ctx, nc) })
	}
	group.Go(func() error { return r.count(ctx) })
	group.Go(func() error { return r.tallyAll(ctx) })
	return group.Wait()
}

// ping asks one connection for a sign of life.
func (r *Reach) ping(ctx context.Context, nc *nats.Conn) error {
	ticker := time.NewTicker(reachEvery)
	defer ticker.Stop()
	for {
		switch {
		case !nc.IsConnected():
		case nc.Opts.InProcessServer != nil, flush(ctx, nc) == nil:
			server := nc.ConnectedServerName()
			r.mu.Lock()
			r.heard[nc], r.server[nc] = time.Now(), server
			r.mu.Unlock()
		}
		r.leave(nc)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

func flush(ctx context.Context, nc *nats.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, reachSilence)
	defer cancel()
	return nc.FlushWithContext(ctx)
}

// leave makes a connection anew that is silent, or that leads to a server which is cut off from the
// others.
func (r *Reach) leave(nc *nats.Conn) {
	now := time.Now()
	server := nc.ConnectedServerName()
	r.mu.Lock()
	silent := now.Sub(r.heard[nc]) > reachLeave
	isolated := r.size > 1 && (!r.minority.IsZero() && now.Sub(r.minority) > reachLeave ||
		r.minority.IsZero() && server != "" && now.Sub(r.servers[server]) > reachLeave)
	leave := nc.IsConnected() && (silent || isolated) && now.Sub(r.left[nc]) > reachAgain
	if leave {
		r.left[nc] = now
	}
	r.mu.Unlock()
	if !leave {
		return
	}
	r.log.Warn(
		"broker connection left", "connection", nc.Opts.Name, "server", server, "silent", silent,
		"isolated", isolated,
	)
	if err := nc.ForceReconnect(); err != nil {
		r.log.Warn("broker connection not made anew", "connection", nc.Opts.Name, "error", err)
	}
}

// count asks every server of a cluster for a sign of life.
func (r *Reach) count(ctx context.Context) error {
	inbox := r.sys.NewInbox()
	sub, err := r.sys.Subscribe(inbox, func(msg *nats.Msg) {
		var answer struct {
			Server struct {
				Name    string `json:"name"`
				Cluster string `json:"cluster"`
			} `json:"server"`
			Stats struct {
				JetStream *struct {
					Meta *struct {
						Size int `json:"cluster_size"`
					} `json:"meta"`
				} `json:"jetstream"`
			} `json:"statsz"`
		}
		if json.Unmarshal(msg.Data, &answer) != nil ||
			answer.Server.Cluster != r.sys.ConnectedClusterName() {
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.servers[answer.Server.Name] = time.Now()
		if js := answer.Stats.JetStream; js != nil && js.Meta != nil {
			r.members[answer.Server.Name] = time.Now()
			r.size = js.Meta.Size
		}
	})
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only with the connection, which ends it too
	ticker := time.NewTicker(reachEvery)
	defer ticker.Stop()
	for {
		if r.sys.ConnectedClusterName() != "" {
			err := r.sys.PublishRequest(pingServers, inbox, nil)
			if errors.Is(err, nats.ErrConnectionClosed) {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// tallyAll counts the servers that were heard, also while the connection takes no questions.
func (r *Reach) tallyAll(ctx context.Context) error {
	ticker := time.NewTicker(reachEvery)
	defer ticker.Stop()
	for {
		r.tally(time.Now())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// tally finds out whether enough servers were heard.
func (r *Reach) tally(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	heard := 0
	for _, at := range r.members {
		if now.Sub(at) < reachSilence {
			heard++
		}
	}
	switch {
	case heard > r.size/2 || r.size < 2:
		r.minority = time.Time{}
	case r.minority.IsZero():
		r.minority = now
	}
}

// CutOff reports whether the process does not reach the broker, or only a minority of its servers.
func (r *Reach) CutOff() bool { return r.Lost(r.cloud) }

// Lost reports whether a connection is of no use: it is silent, or the server at its other end is
// cut off from the majority. When a majority cannot be seen at all, every connection is lost.
func (r *Reach) Lost(nc *nats.Conn) bool {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	server := r.server[nc]
	if now.Sub(r.heard[nc]) > reachSilence {
		return true
	}
	if r.size < 2 {
		return false
	}
	return !r.minority.IsZero() || server != "" && now.Sub(r.servers[server]) > reachSilence
}
