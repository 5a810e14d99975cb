package identity

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/streams"
)

const (
	connectionsSubject = "$SYS.REQ.SERVER.PING.CONNZ"
	// firstResponse is how long to wait for the first server's list of connections, and
	// nextResponse for each further one. The number of servers is not known.
	firstResponse = 2 * time.Second
	nextResponse  = 250 * time.Millisecond
	kickTimeout   = 2 * time.Second
	// repeatTimeout limits one repetition.
	repeatTimeout = 5 * time.Second
)

// repeatAfter are the times, after the first search for connections, of its repetitions. A
// connection admitted just before a revocation may not be in its server's list yet at the first
// search.
var repeatAfter = []time.Duration{500 * time.Millisecond, 2 * time.Second}

// Disconnect closes the connections of a hub that use one of the certificates, or all of them if
// none is named, on every server, and returns their number. It searches once. A connection that is
// being established at that moment may be missed; Disconnector repeats the search.
func Disconnect(
	ctx context.Context, conns *streams.Conns, hub domain.HubID, fingerprints ...string,
) (closed int, err error) {
	account := streams.ShardAccount(streams.ShardOf(hub, len(conns.Shards)))
	filter := map[string]any{"mqtt_client": hub} // which a server may not apply
	closed, err = closeConnections(ctx, conns.Sys, account, filter, func(c connection) bool {
		return c.Client == string(hub) && (len(fingerprints) == 0 ||
			len(c.Certs) > 0 && slices.Contains(fingerprints, c.Certs[0].SHA256))
	})
	if err != nil {
		err = fmt.Errorf("disconnect %s: %w", hub, err)
	}
	return closed, err
}

// DisconnectTap closes the connections of a tap's user on every server and returns their number. It
// searches once.
func DisconnectTap(
	ctx context.Context, conns *streams.Conns, account streams.Account, user string,
) (closed int, err error) {
	is := func(c connection) bool { return c.User == user }
	if closed, err = closeConnections(ctx, conns.Sys, account, nil, is); err != nil {
		err = fmt.Errorf("disconnect tap %s: %w", user, err)
	}
	return closed, err
}

// closeConnections closes the connections for which is returns true.
func closeConnections(
	ctx context.Context, sys *nats.Conn, account streams.Account, filter map[string]any, is func(connection) bool,
) (closed int, err error) {
	var failed error
	err = eachConnection(ctx, sys, account, filter, func(c connection) {
		if !is(c) {
			return
		}
		if err := c.close(ctx, sys); err != nil {
			failed = errors.Join(failed, err)
			return
		}
		closed++
	})
	return closed, errors.Join(err, failed)
}

// connection is a connection in a server's list.
type connection struct {
	server string
	CID    uint64 `json:"cid"`
	User   string `json:"authorized_user"`
	Client string `json:"mqtt_client"`
	Certs  []struct {
		SHA256 string `json:"cert_sha256"`
	} `json:"tls_peer_certs"`
}

// close closes the connection. Closing one that has ended succeeds.
func (c connection) close(ctx context.Context, sys *nats.Conn) error {
	request, err := json.Marshal(map[string]any{"cid": c.CID})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, kickTimeout)
	defer cancel()
	_, err = sys.RequestWithContext(ctx, "$SYS.REQ.SERVER."+c.server+".KICK", request)
	return err
}

// eachConnection calls do for every connection in an account that matches filter, on every server.
// The account must be named: when asked for all accounts, nats-server 2.15 reads client ids of
// pending connections without a lock, and can crash.
func eachConnection(
	ctx context.Context, sys *nats.Conn, account streams.Account, filter map[string]any,
	do func(connection),
) error {
	options := map[string]any{"auth": true, "acc": account}
	maps.Copy(options, filter)
	request, err := json.Marshal(options)
	if err != nil {
		return err
	}
	inbox := sys.NewRespInbox()
	sub, err := sys.SubscribeSync(inbox)
	if err != nil {
		return err
	}
	defer streams.Unsubscribe(sub)
	if err := sys.PublishRequest(connectionsSubject, inbox, request); err != nil {
		return err
	}
	for wait := firstResponse; ; wait = nextResponse {
		list, err := receiveList(ctx, sub, wait)
		switch {
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && wait == nextResponse:
			return nil
		case err != nil:
			return fmt.Errorf("list connections: %w", err)
		}
		for _, c := range list.Data.Connections {
			c.server = list.Server.ID
			do(c)
		}
		if streams.IsSingle(sys) {
			return nil // a single server: no further response
		}
	}
}

// connectionList is a server's response to connectionsSubject.
type connectionList struct {
	Server struct {
		ID string `json:"id"`
	} `json:"server"`
	Data struct {
		Connections []connection `json:"connections"`
	} `json:"data"`
}

func receiveList(
	ctx context.Context, sub *nats.Subscription, wait time.Duration,
) (connectionList, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	msg, err := sub.NextMsgWithContext(ctx)
	if err != nil {
		return connectionList{}, err
	}
	var list connectionList
	return list, json.Unmarshal(msg.Data, &list)
}

// Disconnector closes the connections of hubs. It implements directory.Connections and is safe for
// concurrent use.
type Disconnector struct {
	conns        *streams.Conns
	logger       *slog.Logger
	disconnected prometheus.Counter

	mu          sync.Mutex
	done        chan struct{}
	closed      bool
	repetitions sync.WaitGroup
}

// NewDisconnector returns a Disconnector. A nil logger is slog.Default(). Metrics are registered
// with r unless it is nil. The caller must call Close or Finish.
func NewDisconnector(
	conns *streams.Conns, logger *slog.Logger, r prometheus.Registerer,
) *Disconnector {
	return &Disconnector{
		conns:        conns,
		logger:       cmp.Or(logger, slog.Default()),
		disconnected: newDisconnected(r),
		done:         make(chan struct{}),
	}
}

// DisconnectRevoked closes the hub's connections that use one of the certificates (fingerprints).
// It returns after the first search; two more follow in the background, half a second and two
// seconds later. The certificates must be revoked before the call, so that new connections with
// them are rejected. Connections with other certificates stay open.
func (d *Disconnector) DisconnectRevoked(
	ctx context.Context, hub domain.HubID, certificates []string,
) error {
	if len(certificates) == 0 {
		return nil // an empty list would close all connections
	}
	d.mu.Lock()
	if !d.closed {
		d.repetitions.Go(func() { d.repeat(hub, certificates) })
	}
	d.mu.Unlock()
	_, err := d.disconnect(ctx, hub, certificates)
	return err
}

// repeat repeats the search of DisconnectRevoked until Close.
func (d *Disconnector) repeat(hub domain.HubID, certificates []string) {
	began := time.Now()
	for _, after := range repeatAfter {
		select {
		case <-d.done:
			return
		case <-time.After(time.Until(began.Add(after))):
		}
		ctx, cancel := context.WithTimeout(context.Background(), repeatTimeout)
		if _, err := d.disconnect(ctx, hub, certificates); err != nil {
			d.logger.Warn(
				"repeated search for revoked connections failed", "hub_id", hub, "error", err,
			)
		}
		cancel()
	}
}

// DisconnectBlocked closes all connections of a hub and returns their number. It searches for them
// three times within two seconds. The directory must reject the hub before the call. After an error
// the call can be repeated.
func (d *Disconnector) DisconnectBlocked(
	ctx context.Context, hub domain.HubID,
) (closed int, err error) {
	began := time.Now()
	for _, after := range append([]time.Duration{0}, repeatAfter...) {
		if !streams.Sleep(ctx, time.Until(began.Add(after))) {
			return closed, ctx.Err()
		}
		more, err := d.disconnect(ctx, hub, nil)
		if closed += more; err != nil {
			return closed, err
		}
	}
	return closed, nil
}

// Disconnect closes all connections of a hub. The hub may connect again.
func (d *Disconnector) Disconnect(ctx context.Context, hub domain.HubID) error {
	_, err := d.disconnect(ctx, hub, nil)
	return err
}

// disconnect calls Disconnect and counts and logs the closed connections.
func (d *Disconnector) disconnect(
	ctx context.Context, hub domain.HubID, certificates []string,
) (closed int, err error) {
	closed, err = Disconnect(ctx, d.conns, hub, certificates...)
	if closed > 0 {
		d.disconnected.Add(float64(closed))
		d.logger.Info("hub disconnected", "hub_id", hub, "connections", closed)
	}
	return closed, err
}

// Finish waits until running repetitions are complete, at most two seconds, and closes the
// Disconnector.
func (d *Disconnector) Finish() {
	d.repetitions.Wait()
	d.Close()
}

// Close cancels the repetitions and waits for their goroutines.
func (d *Disconnector) Close() {
	d.mu.Lock()
	if !d.closed {
		d.closed = true
		close(d.done)
	}
	d.mu.Unlock()
	d.repetitions.Wait()
}
