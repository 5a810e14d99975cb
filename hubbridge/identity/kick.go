package identity

import (
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
	// firstAnswer is how long the first server may take to list a hub's connections, nextAnswer
	// each one after it: how many servers there are is not known.
	firstAnswer = 2 * time.Second
	nextAnswer  = 250 * time.Millisecond
	kickTimeout = 2 * time.Second
	// repeatTimeout bounds one repetition.
	repeatTimeout = 5 * time.Second
)

// kicksAfter are the times after a kick when it is repeated. A connection can have been let in just
// before a revocation and be on its way into a server's list while the first kick reads it.
var kicksAfter = []time.Duration{500 * time.Millisecond, 2 * time.Second}

// Kick cuts the connections of a hub that were made with one of the certificates, or all of them
// when none is named, on every server that conns reaches, and says how many. A hub without a
// connection is no error. It looks once: a connection that is being made at the moment can escape
// it, unless the directory refuses it already; Kicker looks again.
func Kick(
	ctx context.Context, conns *streams.Conns, hub domain.HubID, fingerprints ...string,
) (cut int, err error) {
	var failed error
	account := streams.ShardAccount(streams.ShardOf(hub, len(conns.Shards)))
	err = eachConnection(
		ctx,
		conns.Sys,
		account,
		map[string]any{"mqtt_client": hub},
		func(c connection) {
			if c.Client != string(hub) {
				return // a server that does not know the filter lists everyone
			}
			switch err := c.kick(ctx, conns.Sys, fingerprints); {
			case errors.Is(err, errOtherCertificate):
			case err != nil:
				failed = errors.Join(failed, err)
			default:
				cut++
			}
		},
	)
	if err = errors.Join(err, failed); err != nil {
		return cut, fmt.Errorf("kick %s: %w", hub, err)
	}
	return cut, nil
}

// KickTap cuts the connections of a tap's user in its account on every server that conns reaches,
// and says how many. It looks once, as Kick does. A connection from before each tap had an account
// of its own is in streams.AccountTap, and is cut as well.
func KickTap(
	ctx context.Context, conns *streams.Conns, account streams.Account, user string,
) (cut int, err error) {
	var failed error
	for _, account := range []streams.Account{account, streams.AccountTap} {
		failed = errors.Join(
			failed,
			eachConnection(ctx, conns.Sys, account, nil, func(c connection) {
				if c.User != user {
					return
				}
				if err := c.kick(ctx, conns.Sys, nil); err != nil {
					failed = errors.Join(failed, err)
					return
				}
				cut++
			}),
		)
	}
	if err = failed; err != nil {
		return cut, fmt.Errorf("kick the tap %s: %w", user, err)
	}
	return cut, nil
}

// connection is one, as a server lists it.
type connection struct {
	server string
	CID    uint64 `json:"cid"`
	User   string `json:"authorized_user"`
	Client string `json:"mqtt_client"`
	Certs  []struct {
		SHA256 string `json:"cert_sha256"`
	} `json:"tls_peer_certs"`
}

// errOtherCertificate says that a connection was made with a certificate that nobody wants cut.
var errOtherCertificate = errors.New("made with another certificate")

// kick cuts the connection if it was made with one of the certificates, or in any case when none is
// named. One that has ended meanwhile is cut as well.
func (c connection) kick(ctx context.Context, sys *nats.Conn, fingerprints []string) error {
	if len(fingerprints) > 0 &&
		(len(c.Certs) == 0 || !slices.Contains(fingerprints, c.Certs[0].SHA256)) {
		return errOtherCertificate
	}
	question, err := json.Marshal(map[string]any{"cid": c.CID})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, kickTimeout)
	defer cancel()
	_, err = sys.RequestWithContext(ctx, "$SYS.REQ.SERVER."+c.server+".KICK", question)
	return err
}

// eachConnection asks every server for connections, those that the filter says. It asks for those
// in one account, which excludes one that is about to be let in: asked for all accounts,
// nats-server 2.15 reads client ids that it is just writing, and a process that reads half a string
// ends.
func eachConnection(
	ctx context.Context, sys *nats.Conn, account streams.Account, filter map[string]any,
	do func(connection),
) error {
	asked := map[string]any{"auth": true, "acc": account}
	maps.Copy(asked, filter)
	question, err := json.Marshal(asked)
	if err != nil {
		return err
	}
	inbox := sys.NewRespInbox()
	sub, err := sys.SubscribeSync(inbox)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only with the connection, which ends it too
	if err := sys.PublishRequest(connectionsSubject, inbox, question); err != nil {
		return err
	}
	for wait := firstAnswer; ; wait = nextAnswer {
		answer, err := nextAnswerOf(ctx, sub, wait)
		switch {
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && wait == nextAnswer:
			return nil
		case err != nil:
			return fmt.Errorf("list its connections: %w", err)
		}
		for _, c := range answer.Data.Connections {
			c.server = answer.Server.ID
			do(c)
		}
		if sys.ConnectedClusterName() == "" {
			return nil // a server on its own: there is no other answer
		}
	}
}

// connectionList is a server's answer.
type connectionList struct {
	Server struct {
		ID string `json:"id"`
	} `json:"server"`
	Data struct {
		Connections []connection `json:"connections"`
	} `json:"data"`
}

func nextAnswerOf(
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

// Kicker cuts the connections of hubs. It is the directory's port for that, and is safe for
// concurrent use.
type Kicker struct {
	conns *streams.Conns
	log   *slog.Logger
	kicks prometheus.Counter

	mu     sync.Mutex
	done   chan struct{}
	closed bool
	again  sync.WaitGroup
}

// NewKicker returns a Kicker that registers its metrics with r, unless r is nil. Close or Finish
// must be called in the end.
func NewKicker(conns *streams.Conns, log *slog.Logger, r prometheus.Registerer) *Kicker {
	return &Kicker{conns: conns, log: log, kicks: newKicks(r), done: make(chan struct{})}
}

// CutRevoked cuts the hub's connections that were made with one of the certificates, and repeats
// this after half a second and after two, in the background. It returns after the first time. The
// certificates must be revoked before the call: then new connections are rejected, and after the
// repetitions none is left. Connections with other certificates stay.
func (k *Kicker) CutRevoked(ctx context.Context, hub domain.HubID, certificates []string) error {
	if len(certificates) == 0 {
		return nil // kick without any would cut every connection
	}
	k.mu.Lock()
	if !k.closed {
		k.again.Go(func() { k.repeat(hub, certificates) })
	}
	k.mu.Unlock()
	_, err := k.kick(ctx, hub, certificates)
	return err
}

func (k *Kicker) repeat(hub domain.HubID, certificates []string) {
	began := time.Now()
	for _, after := range kicksAfter {
		select {
		case <-k.done:
			return
		case <-time.After(time.Until(began.Add(after))):
		}
		ctx, cancel := context.WithTimeout(context.Background(), repeatTimeout)
		if _, err := k.kick(ctx, hub, certificates); err != nil {
			k.log.Warn("could not look again for connections to cut", "hub_id", hub, "error", err)
		}
		cancel()
	}
}

// CutBlocked cuts all connections of a hub three times within two seconds, and returns how many it
// cut. The directory must keep the hub from connecting before the call. After an error it may be
// called again.
func (k *Kicker) CutBlocked(ctx context.Context, hub domain.HubID) (cut int, err error) {
	began := time.Now()
	for _, after := range append([]time.Duration{0}, kicksAfter...) {
		select {
		case <-time.After(time.Until(began.Add(after))):
		case <-ctx.Done():
			return cut, ctx.Err()
		}
		more, err := k.kick(ctx, hub, nil)
		if cut += more; err != nil {
			return cut, err
		}
	}
	return cut, nil
}

// Disconnect cuts all connections of a hub once. The hub may connect again.
func (k *Kicker) Disconnect(ctx context.Context, hub domain.HubID) error {
	_, err := k.kick(ctx, hub, nil)
	return err
}

func (k *Kicker) kick(
	ctx context.Context, hub domain.HubID, certificates []string,
) (cut int, err error) {
	cut, err = Kick(ctx, k.conns, hub, certificates...)
	if cut > 0 {
		k.kicks.Add(float64(cut))
		k.log.Info("hub connection cut", "hub_id", hub, "connections", cut)
	}
	return cut, err
}

// Finish waits for the repetitions that are under way, which take two seconds, and then closes the
// Kicker.
func (k *Kicker) Finish() {
	k.again.Wait()
	k.Close()
}

// Close ends the repetitions and waits for those that are under way.
func (k *Kicker) Close() {
	k.mu.Lock()
	if !k.closed {
		k.closed = true
		close(k.done)
	}
	k.mu.Unlock()
	k.again.Wait()
}
