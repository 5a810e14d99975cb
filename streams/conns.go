package streams

import (
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
	// connectTimeout bounds one connection's first attempt.
	connectTimeout = 10 * time.Second
	// reconnectWait is the pause between attempts to reconnect, for ever; reconnectJitter spreads
	// the replicas of a cluster.
	reconnectWait   = 100 * time.Millisecond
	reconnectJitter = 200 * time.Millisecond
	// redialTimeout bounds a later attempt: of several servers, one that is cut off must not keep a
	// connection from the others for long.
	redialTimeout = 3 * time.Second
	// pingInterval and maxPings detect a broker that is gone within 15 s.
	pingInterval = 5 * time.Second
	maxPings     = 2
	// writeTimeout is how long a write may be stuck until the connection is opened again. Meanwhile
	// it blocks all other users of the connection.
	writeTimeout = 4 * time.Second
	// fullTimeout is for how long a first attempt is made again, after fullPause, while the broker
	// closes the connection because it has too many.
	fullTimeout = 5 * time.Second
	fullPause   = 50 * time.Millisecond
	// connectAtOnce is how many connections are made side by side.
	connectAtOnce = 8
)

// Conns holds one connection to each account of the broker. They are safe for concurrent use and
// reconnect for ever.
type Conns struct {
	Sys   *nats.Conn
	Cloud *nats.Conn
	// Shards by number.
	Shards []*nats.Conn

	// open opens one more connection to a shard's account.
	open func(shard int, options []nats.Option) (*nats.Conn, error)
}

// Connect connects to every account, or to none. Without a deadline of ctx each account gets 10 s.
// opts come after the service's own options and may replace them: nats.InProcessServer for an
// embedded broker, WithLog for a logger other than the default one.
func Connect(ctx context.Context, c Credentials, opts ...nats.Option) (*Conns, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("connect to the broker: %w", err)
	}
	accounts := c.Accounts()
	conns := make([]*nats.Conn, len(accounts))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(connectAtOnce)
	for i, account := range accounts {
		group.Go(func() (err error) {
			conns[i], err = connect(ctx, c, account, opts)
			return err
		})
	}
	all := &Conns{open: func(shard int, options []nats.Option) (*nats.Conn, error) {
		own, err := optionsOf(c, ShardAccount(shard))
		if err != nil {
			return nil, err
		}
		return nats.Connect(c.URL, append(append(own, options...), opts...)...)
	}}
	err := group.Wait()
	all.Sys, all.Cloud, all.Shards = conns[0], conns[1], conns[2:]
	if err != nil {
		all.Close()
		return nil, err
	}
	return all, nil
}

func connect(
	ctx context.Context, c Credentials, account Account, opts []nats.Option,
) (*nats.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	timeout := connectTimeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(deadline))
	}
	own, err := optionsOf(c, account)
	if err != nil {
		return nil, err
	}
	dial, connected := dialUntil(ctx, timeout)
	defer connected()
	own = append(own, nats.Timeout(timeout), nats.SetCustomDialer(dial))
	options := append(append(own, opts...), boundWrites)
	begun := time.Now()
	nc, err := nats.Connect(c.URL, options...)
	for err != nil && closedByServer(err) && time.Since(begun) < min(timeout, fullTimeout) && ctx.Err() == nil {
		time.Sleep(fullPause)
		nc, err = nats.Connect(c.URL, options...)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to the broker's account %s: %w", account, err)
	}
	return nc, nil
}

// errFull is the error of a server that has reached its limit of connections.
var errFull = errors.New("nats: " + nats.MAX_CONNECTIONS_ERR)

// closedByServer reports whether a server has closed a new connection, as one with too many
// connections does. A wrong password is another error.
func closedByServer(err error) bool {
	return errors.Is(err, errFull) || errors.Is(err, io.EOF) ||
		errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE)
}

// boundWrites bounds how long a stuck network blocks the users of a connection. A connection within
// the process has no network.
func boundWrites(o *nats.Options) error {
	if o.InProcessServer == nil {
		o.FlusherTimeout, o.ReconnectOnFlusherError = writeTimeout, true
	}
	return nil
}

// optionsOf are the options of every connection to an account.
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

// dialer is a function that dials.
type dialer func(network, address string) (net.Conn, error)

// Dial calls the function.
func (d dialer) Dial(network, address string) (net.Conn, error) { return d(network, address) }

// dialUntil returns what dials for a connection's first attempt, which ends with ctx at whatever
// point it is, and from connected on for every later one, which ctx does not concern: the library
// itself knows no context, and tries one address after the other for as long as each takes.
func dialUntil(ctx context.Context, timeout time.Duration) (dial dialer, connected func()) {
	var later atomic.Bool
	var mu sync.Mutex
	var stops []func() bool
	dial = func(network, address string) (net.Conn, error) {
		if later.Load() {
			return net.DialTimeout(network, address, redialTimeout)
		}
		d := net.Dialer{Timeout: timeout}
		conn, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		// nobody has it any more
		stops = append(stops, context.AfterFunc(ctx, func() { _ = conn.Close() }))
		return conn, nil
	}
	return dial, func() {
		later.Store(true)
		mu.Lock()
		defer mu.Unlock()
		for _, stop := range stops {
			stop()
		}
	}
}

// WithLog sends what a connection reports on the side to a logger: lost and regained connections,
// and subscriptions that could not keep up.
func WithLog(log *slog.Logger) nats.Option {
	return func(o *nats.Options) error {
		log := log.With("connection", o.Name)
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
			log.Warn("broker connection reports an error", attrs...)
		}
		o.DisconnectedErrCB = func(nc *nats.Conn, err error) {
			// A connection that was closed on purpose ends without an error.
			if err != nil {
				log.Warn("broker connection lost", "error", err)
			}
		}
		o.ReconnectedCB = func(nc *nats.Conn) { log.Info("broker connection regained", "server", nc.ConnectedServerName()) }
		return nil
	}
}

// Shard returns the connection to a hub's shard.
func (c *Conns) Shard(hub domain.HubID) *nats.Conn { return c.Shards[ShardOf(hub, len(c.Shards))] }

// Close closes every connection. Operations under way end with nats.ErrConnectionClosed.
func (c *Conns) Close() {
	for _, nc := range append([]*nats.Conn{c.Sys, c.Cloud}, c.Shards...) {
		if nc != nil {
			nc.Close()
		}
	}
}
