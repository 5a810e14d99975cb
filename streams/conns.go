package streams

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
)

const (
	// connectTimeout bounds the first attempt to connect to an account.
	connectTimeout = 10 * time.Second
	// reconnectWait is the pause between attempts to reconnect, which never end. reconnectJitter is
	// its random part, so that replicas do not reconnect at the same moment.
	reconnectWait   = 100 * time.Millisecond
	reconnectJitter = 200 * time.Millisecond
	// redialTimeout bounds an attempt to reconnect: after it, the next server of the cluster is
	// tried.
	redialTimeout = 3 * time.Second
	// With pingInterval and maxPings a lost broker is detected within 15 s.
	pingInterval = 5 * time.Second
	maxPings     = 2
	// writeTimeout is how long a write may block before the connection is replaced. A blocked write
	// blocks all users of the connection.
	writeTimeout = 4 * time.Second
	// fullTimeout is how long the first attempt is repeated, with pauses of fullPause, while the
	// broker has reached its limit of connections.
	fullTimeout = 5 * time.Second
	fullPause   = 50 * time.Millisecond
	// parallelConnects is how many accounts are connected to at a time.
	parallelConnects = 8
)

// Conns is one connection to each account of the broker. The connections are safe for concurrent
// use and reconnect until they are closed.
//
// The embedded broker has two servers. External servers are one cluster: there, CloudSys and Sys
// are the same connection, and so are Callout and Cloud.
type Conns struct {
	// Sys is the connection to the account SYS of the servers that hubs connect to, CloudSys to the
	// account SYS of the server that Cloud leads to.
	Sys, CloudSys *nats.Conn
	// Cloud is the connection to the account CLOUD.
	Cloud *nats.Conn
	// Callout is the connection on which the servers that hubs connect to request the auth callout.
	Callout *nats.Conn
	// Shards are the connections to the shards' accounts, by the shards' numbers.
	Shards []*nats.Conn

	// clustered is set once the server at the other end of Cloud is known to be one of a cluster.
	clustered atomic.Bool
	// open opens another connection to an account of the servers that hubs connect to.
	open func(url string, account Account, options ...nats.Option) (*nats.Conn, error)
}

// Connect connects to every account, each within 10 s or until ctx ends. After an error no
// connection is open. The caller must Close the connections.
//
// opts override the service's own options, such as WithLog for another logger than the default one.
func Connect(ctx context.Context, c Credentials, opts ...nats.Option) (*Conns, error) {
	return connectAll(ctx, c, c.Shards, opts, opts)
}

// ConnectCloud is like Connect for commands that need no hub's own streams: it connects to the
// accounts SYS and CLOUD only. Shards has nil for each shard.
func ConnectCloud(ctx context.Context, c Credentials, opts ...nats.Option) (*Conns, error) {
	return connectAll(ctx, c, 0, opts, opts)
}

// ConnectInProcess is like Connect for the two servers of an embedded broker in this process: cloud
// has the account CLOUD, and hubs connect to the other one.
func ConnectInProcess(
	ctx context.Context, c Credentials, hubs, cloud nats.InProcessConnProvider, opts ...nats.Option,
) (*Conns, error) {
	return connectAll(
		ctx, c, c.Shards, append([]nats.Option{nats.InProcessServer(hubs)}, opts...),
		append([]nats.Option{nats.InProcessServer(cloud)}, opts...),
	)
}

// connectAll connects to the accounts SYS and CLOUD and to the first shards. hubs are the options of
// connections to the servers that hubs connect to, cloud for connections to the server with the
// account CLOUD.
func connectAll(
	ctx context.Context, c Credentials, shards int, hubs, cloud []nats.Option,
) (*Conns, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("connect to the broker: %w", err)
	}
	all := &Conns{
		Shards: make([]*nats.Conn, c.Shards),
		open: func(url string, account Account, options ...nats.Option) (*nats.Conn, error) {
			own, err := optionsOf(c, account)
			if err != nil {
				return nil, err
			}
			return nats.Connect(cmp.Or(url, c.URL), append(append(own, options...), hubs...)...)
		},
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelConnects)
	open := func(to **nats.Conn, url string, account Account, opts []nats.Option) {
		group.Go(func() (err error) {
			*to, err = connect(ctx, c, url, account, opts)
			return err
		})
	}
	open(&all.Sys, c.URL, AccountSys, hubs)
	open(&all.Cloud, cmp.Or(c.CloudURL, c.URL), AccountCloud, cloud)
	if c.CloudURL != "" {
		open(&all.CloudSys, c.CloudURL, AccountSys, cloud)
		open(&all.Callout, c.URL, AccountCloud, hubs)
	}
	for i := range shards {
		open(&all.Shards[i], c.URL, ShardAccount(i), hubs)
	}
	err := group.Wait()
	if c.CloudURL == "" {
		all.CloudSys, all.Callout = all.Sys, all.Cloud
	}
	if err != nil {
		all.Close()
		return nil, err
	}
	_ = all.Clustered()
	return all, nil
}

// Clustered reports whether the broker is a cluster, also while there is no connection.
func (c *Conns) Clustered() bool {
	// A connection whose write is stuck in the network blocks who asks it for the name.
	if !c.clustered.Load() && c.Cloud.ConnectedClusterName() != "" {
		c.clustered.Store(true)
	}
	return c.clustered.Load()
}

// IsSingle reports whether a connection leads to a server without a cluster. It is false while the
// connection is interrupted.
func IsSingle(nc *nats.Conn) bool {
	return nc.IsConnected() && nc.ConnectedClusterName() == "" && nc.IsConnected()
}

func connect(
	ctx context.Context, c Credentials, url string, account Account, opts []nats.Option,
) (*nats.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	timeout := connectTimeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(deadline))
	}
	options, err := optionsOf(c, account)
	if err != nil {
		return nil, err
	}
	dial, connected := dialUntil(ctx, timeout)
	defer connected()
	options = append(options, nats.Timeout(timeout), nats.SetCustomDialer(dial))
	options = append(append(options, opts...), boundWrites)
	begun := time.Now()
	nc, err := nats.Connect(url, options...)
	for err != nil && closedByServer(err) && ctx.Err() == nil &&
		time.Since(begun) < min(timeout, fullTimeout) {
		time.Sleep(fullPause) // at most fullTimeout in all
		nc, err = nats.Connect(url, options...)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to the broker's account %s: %w", account, err)
	}
	return nc, nil
}

// errFull is nats.go's error of a server that has reached its limit of connections.
var errFull = errors.New("nats: " + nats.MAX_CONNECTIONS_ERR)

// closedByServer reports whether err means that the server closed a new connection, as a
// server does that has reached its limit of connections.
func closedByServer(err error) bool {
	return errors.Is(err, errFull) || errors.Is(err, io.EOF) ||
		errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE)
}

// boundWrites bounds how long a blocked network blocks the users of a connection. Connections in
// process need no bound.
func boundWrites(o *nats.Options) error {
	if o.InProcessServer == nil {
		o.FlusherTimeout, o.ReconnectOnFlusherError = writeTimeout, true
	}
	return nil
}

// optionsOf returns the options of every connection to an account.
func optionsOf(c Credentials, account Account) ([]nats.Option, error) {
	user := c.Users[account]
	secure, err := c.TLS()
	if err != nil {
		return nil, err
	}
	options := []nats.Option{
		nats.Name("hubcloud " + string(account)),
		nats.UserInfo(user.User, user.Password),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.ReconnectJitter(reconnectJitter, reconnectJitter),
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(maxPings),
		WithLog(slog.Default()),
	}
	if secure != nil {
		options = append(options, nats.Secure(secure))
	}
	return options, nil
}

// dialer makes a function a nats.CustomDialer.
type dialer func(network, address string) (net.Conn, error)

// Dial implements nats.CustomDialer.
func (d dialer) Dial(network, address string) (net.Conn, error) { return d(network, address) }

// dialUntil returns the dialer of a connection. Until connected is called its network connections
// end with ctx, since nats.Connect has no context and would try each address for as long as
// timeout. Later dials, to reconnect, do not depend on ctx.
func dialUntil(ctx context.Context, timeout time.Duration) (dial dialer, connected func()) {
	var mu sync.Mutex
	done := false
	var stops []func() bool
	dial = func(network, address string) (net.Conn, error) {
		mu.Lock()
		reconnecting := done
		mu.Unlock()
		if reconnecting {
			return net.DialTimeout(network, address, redialTimeout)
		}
		d := net.Dialer{Timeout: timeout}
		conn, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		stops = append(stops, context.AfterFunc(ctx, func() { _ = conn.Close() })) // ends its reads
		return conn, nil
	}
	return dial, func() {
		mu.Lock()
		defer mu.Unlock()
		done = true
		for _, stop := range stops {
			stop()
		}
	}
}

// WithLog logs a connection's asynchronous events: a lost or regained connection, and errors such
// as a subscription that dropped messages.
func WithLog(logger *slog.Logger) nats.Option {
	return func(o *nats.Options) error {
		logger := logger.With("connection", o.Name)
		o.AsyncErrorCB = func(_ *nats.Conn, sub *nats.Subscription, err error) {
			attrs := []any{"error", err}
			if sub != nil {
				attrs = append(attrs, "subject", sub.Subject)
				if errors.Is(err, nats.ErrSlowConsumer) {
					if dropped, err := sub.Dropped(); err == nil {
						attrs = append(attrs, "dropped", dropped)
					}
				}
			}
			logger.Warn("broker connection reports an error", attrs...)
		}
		o.DisconnectedErrCB = func(nc *nats.Conn, err error) {
			// The error is nil for a connection that was closed by Close.
			if err != nil {
				logger.Warn("broker connection lost", "error", err)
			}
		}
		o.ReconnectedCB = func(nc *nats.Conn) {
			logger.Info("broker connection regained", "server", nc.ConnectedServerName())
		}
		return nil
	}
}

// OpenSys opens a connection to the account SYS of one server, by its URL. The connection does not
// reconnect. The caller must close it.
func (c *Conns) OpenSys(url string) (*nats.Conn, error) {
	return c.open(
		url, AccountSys, nats.NoReconnect(), nats.IgnoreDiscoveredServers(),
		nats.Timeout(fencedTimeout),
	)
}

// Shard returns the connection to a hub's shard.
func (c *Conns) Shard(hub domain.HubID) *nats.Conn { return c.Shards[ShardOf(hub, len(c.Shards))] }

// All returns every connection once: those to SYS and CLOUD, then those to the shards in order.
func (c *Conns) All() []*nats.Conn {
	all := []*nats.Conn{c.Sys, c.Cloud}
	if c.CloudSys != c.Sys {
		all = append(all, c.CloudSys)
	}
	if c.Callout != c.Cloud {
		all = append(all, c.Callout)
	}
	return append(all, c.Shards...)
}

// Close closes every connection. Running operations return nats.ErrConnectionClosed.
func (c *Conns) Close() {
	for _, nc := range c.All() {
		if nc != nil {
			nc.Close()
		}
	}
}
