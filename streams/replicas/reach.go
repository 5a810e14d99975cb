package replicas

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"hubcloud/streams"
)

const (
	// pingEvery is how often each connection, and in a cluster each server, is pinged.
	pingEvery = 500 * time.Millisecond
	// maxSilence is how long a connection or a server may be silent until it counts as out of
	// reach. Event streams of a replica that lost the broker end within three seconds.
	maxSilence = 2 * time.Second
	// suspectAfter is how long a server of a cluster may be silent until AnySilent is true.
	suspectAfter = time.Second
	// countFor is how long HasMajority waits for answers.
	countFor = time.Second
	// reconnectAfter is how long a connection may be silent until it is closed and opened again, to
	// another server if there is one; one to a server that is cut off from the others is left after
	// maxSilence. reconnectEvery is the least time between two such attempts.
	reconnectAfter = 4 * time.Second
	reconnectEvery = 5 * time.Second
	// statszSubject asks every server of the broker for its statistics, with its view of the
	// cluster.
	statszSubject = "$SYS.REQ.SERVER.PING.STATSZ"
)

// Reach watches whether this process reaches the broker: whether each of its connections answers,
// and whether, in a cluster, the servers that it reaches are a majority. nats.go notices a dead
// connection after half a minute, and never that the server at its other end is cut off from the
// rest. It measures silence by the time during which this process ran: a process that gets no
// processor is not cut off. Safe for concurrent use.
type Reach struct {
	sys    *nats.Conn
	cloud  *nats.Conn
	all    []*nats.Conn
	logger *slog.Logger
	clock  runClock

	mu sync.Mutex
	// answered is when each connection last answered a ping, by the clock.
	answered map[*nats.Conn]time.Duration
	// server is the name of the server at the other end of each connection, "" while there is none.
	// It is kept here because a connection whose write is stuck in the network blocks every caller
	// that asks it.
	server map[*nats.Conn]string
	// sysSince is when sys was first found at its server, by the clock: the others that are asked
	// through it have not had time to answer before.
	sysSince time.Duration
	// reconnected is when each connection was last opened again.
	reconnected map[*nats.Conn]time.Time
	// servers holds when each server of a cluster last answered, by name, and members the same for
	// those that keep streams, by the clock; size is how many of the latter the cluster has.
	servers, members map[string]time.Duration
	size             int
	// starts holds when each server of a cluster was started, by its own clock, and started when
	// one was last found to have started.
	starts  map[string]time.Time
	started time.Time
	// routes holds the ids of each server's connections to other servers, and changed when some
	// were last found to have changed.
	routes  map[string][]uint64
	changed time.Time
	// began is when the servers were asked for the first time.
	began time.Time
	// inMinority reports that fewer than a majority have answered lately.
	inMinority bool
}

// NewReach returns a Reach for connections to one broker. All count as alive until Run has pinged
// them. A nil logger means slog.Default().
func NewReach(logger *slog.Logger, first *streams.Conns, more ...*streams.Conns) *Reach {
	r := &Reach{
		sys: first.Sys, cloud: first.Cloud, logger: cmp.Or(logger, slog.Default()),
		answered: map[*nats.Conn]time.Duration{}, server: map[*nats.Conn]string{},
		reconnected: map[*nats.Conn]time.Time{},
		servers:     map[string]time.Duration{}, members: map[string]time.Duration{},
		starts: map[string]time.Time{}, routes: map[string][]uint64{},
	}
	for _, conns := range append([]*streams.Conns{first}, more...) {
		for _, nc := range conns.All() {
			r.all = append(r.all, nc)
			r.server[nc] = nc.ConnectedServerName()
		}
	}
	return r
}

// Run pings until ctx ends, and returns ctx's error.
func (r *Reach) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return r.clock.run(ctx) })
	for _, nc := range r.all {
		group.Go(func() error { return r.ping(ctx, nc) })
	}
	group.Go(func() error { return r.pingServers(ctx) })
	group.Go(func() error { return r.countMembers(ctx) })
	return group.Wait()
}

// ping pings over one connection, and opens it again where that is needed.
func (r *Reach) ping(ctx context.Context, nc *nats.Conn) error {
	for {
		switch {
		case !nc.IsConnected():
		case nc.Opts.InProcessServer != nil, flush(ctx, nc) == nil:
			server := nc.ConnectedServerName()
			r.mu.Lock()
			if nc == r.sys && r.server[nc] != server {
				r.sysSince = r.clock.now()
			}
			r.answered[nc], r.server[nc] = r.clock.now(), server
			r.mu.Unlock()
		}
		r.reconnectIfLost(nc)
		if !streams.Sleep(ctx, pingEvery) {
			return ctx.Err()
		}
	}
}

func flush(ctx context.Context, nc *nats.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, maxSilence)
	defer cancel()
	return nc.FlushWithContext(ctx)
}

// reconnectIfLost opens a connection again that is silent, or that leads to a server which is cut
// off from the others.
func (r *Reach) reconnectIfLost(nc *nats.Conn) {
	now, ran := time.Now(), r.clock.now()
	server := nc.ConnectedServerName()
	r.mu.Lock()
	silent := ran-r.answered[nc] > reconnectAfter
	isolated := server != "" && r.isolated(server, ran)
	reconnect := nc.IsConnected() && (silent || isolated) &&
		now.Sub(r.reconnected[nc]) > reconnectEvery
	if reconnect {
		r.reconnected[nc] = now
	}
	r.mu.Unlock()
	if !reconnect {
		return
	}
	r.logger.Warn(
		"broker connection left", "connection", nc.Opts.Name, "server", server, "silent", silent,
		"isolated", isolated,
	)
	if err := nc.ForceReconnect(); err != nil {
		r.logger.Warn(
			"broker connection not opened again", "connection", nc.Opts.Name, "error", err,
		)
	}
}

// pingServers asks every server of a cluster for its statistics, and notes which ones answer.
func (r *Reach) pingServers(ctx context.Context) error {
	r.mu.Lock()
	r.began = time.Now()
	r.mu.Unlock()
	inbox := r.sys.NewInbox()
	sub, err := r.sys.Subscribe(inbox, func(msg *nats.Msg) {
		var answer statistics
		if json.Unmarshal(msg.Data, &answer) != nil ||
			answer.Server.Cluster != r.sys.ConnectedClusterName() {
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.servers[answer.Server.Name] = r.clock.now()
		r.noteStart(answer.Server.Name, answer.Stats.Start, time.Now())
		routes := make([]uint64, 0, len(answer.Stats.Routes))
		for _, route := range answer.Stats.Routes {
			routes = append(routes, route.ID)
		}
		r.noteRoutes(answer.Server.Name, routes, time.Now())
		if size := answer.size(); size > 0 {
			r.members[answer.Server.Name] = r.clock.now()
			r.size = size
		}
	})
	if err != nil {
		return err
	}
	defer streams.Unsubscribe(sub)
	for {
		if r.sys.ConnectedClusterName() != "" {
			err := r.sys.PublishRequest(statszSubject, inbox, nil)
			if errors.Is(err, nats.ErrConnectionClosed) {
				return err
			}
		}
		if !streams.Sleep(ctx, pingEvery) {
			return ctx.Err()
		}
	}
}

// statistics is a server's answer to statszSubject.
type statistics struct {
	Server struct {
		Name    string `json:"name"`
		Cluster string `json:"cluster"`
	} `json:"server"`
	Stats struct {
		Start  time.Time `json:"start"`
		Routes []struct {
			ID uint64 `json:"rid"`
		} `json:"routes"`
		JetStream *struct {
			Meta *struct {
				Size int `json:"cluster_size"`
			} `json:"meta"`
		} `json:"jetstream"`
	} `json:"statsz"`
}

// size returns how many servers of the cluster keep streams; 0 if this server keeps none.
func (s *statistics) size() int {
	if js := s.Stats.JetStream; js != nil && js.Meta != nil {
		return js.Meta.Size
	}
	return 0
}

// AnySilent reports whether a server of a cluster has not answered lately, or not to this process.
func (r *Reach) AnySilent() bool {
	now := r.clock.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, at := range r.members {
		if now-at > suspectAfter {
			return true
		}
	}
	return false
}

// HasMajority reports whether the server at the other end of a connection to the account SYS
// reaches a majority of its cluster. It asks for a second.
func HasMajority(ctx context.Context, sys *nats.Conn) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, countFor)
	defer cancel()
	inbox := sys.NewInbox()
	sub, err := sys.SubscribeSync(inbox)
	if err != nil {
		return false, err
	}
	defer streams.Unsubscribe(sub)
	if err := sys.PublishRequest(statszSubject, inbox, nil); err != nil {
		return false, err
	}
	for answered := map[string]bool{}; ; {
		msg, err := sub.NextMsgWithContext(ctx)
		var answer statistics
		switch {
		case errors.Is(err, context.DeadlineExceeded) && len(answered) > 0:
			return false, nil
		case err != nil:
			return false, err
		case json.Unmarshal(msg.Data, &answer) != nil || answer.size() == 0:
			continue
		}
		if answered[answer.Server.Name] = true; len(answered) > answer.size()/2 {
			return true, nil
		}
	}
}

// noteStart notes when a server was started, by its own clock. A server that did not answer at the
// first requests counts as one that has just started. The caller must hold r.mu.
func (r *Reach) noteStart(server string, at, now time.Time) {
	before, known := r.starts[server]
	if known && !at.Equal(before) || !known && now.Sub(r.began) > maxSilence {
		r.started = now
	}
	r.starts[server] = at
}

// ServerStarted returns when a server of a cluster was last found to have started; the zero time if
// none was since Run has begun.
func (r *Reach) ServerStarted() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.started
}

// noteRoutes notes the connections of a server to others. The caller must hold r.mu.
func (r *Reach) noteRoutes(server string, routes []uint64, now time.Time) {
	slices.Sort(routes)
	if before, known := r.routes[server]; known && !slices.Equal(routes, before) {
		r.changed = now
	}
	r.routes[server] = routes
}

// RoutesChanged returns when the connections between the servers of a cluster were last found to
// have changed: a server has started or stopped, was cut off from another, or reaches it again.
// Some of what the servers told each other may be lost. It returns the zero time if none have
// changed since Run has begun.
func (r *Reach) RoutesChanged() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// countMembers counts the servers that have answered, also while the connection accepts no
// requests.
func (r *Reach) countMembers(ctx context.Context) error {
	for {
		r.noteMajority(r.clock.now())
		if !streams.Sleep(ctx, pingEvery) {
			return ctx.Err()
		}
	}
}

// noteMajority notes whether a majority of the servers has answered lately.
func (r *Reach) noteMajority(now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	answered := 0
	for _, at := range r.members {
		if now-at < maxSilence {
			answered++
		}
	}
	r.inMinority = answered <= r.size/2 && r.size > 1
}

// Isolated reports whether a server of a cluster, by its name, is cut off from the majority.
func (r *Reach) Isolated(server string) bool {
	now := r.clock.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.isolated(server, now)
}

// isolated is Isolated. If no majority answers, that is so for the server that the others are asked
// through: others may be well. The caller must hold r.mu.
func (r *Reach) isolated(server string, now time.Duration) bool {
	switch {
	case r.size < 2:
		return false
	case r.inMinority:
		return server == r.server[r.sys] && now-r.sysSince > suspectAfter
	default:
		return now-r.servers[server] > maxSilence
	}
}

// CutOff reports whether the process does not reach the broker, or only a minority of its servers.
func (r *Reach) CutOff() bool { return r.Lost(r.cloud) }

// Lost reports whether a connection is of no use: it is silent, or the server at its other end is
// cut off from the majority. While no majority answers, every connection is lost.
func (r *Reach) Lost(nc *nats.Conn) bool {
	now := r.clock.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	server := r.server[nc]
	if now-r.answered[nc] > maxSilence {
		return true
	}
	if r.size < 2 {
		return false
	}
	return r.inMinority || server != "" && now-r.servers[server] > maxSilence
}
