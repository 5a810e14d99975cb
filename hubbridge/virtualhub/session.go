package virtualhub

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"
)

const (
	// connectTimeout bounds each step of a connect.
	connectTimeout = 15 * time.Second
	// writeTimeout bounds one write to the broker.
	writeTimeout = 5 * time.Second
	// farewell is how long, in ms, a disconnect in good order may take.
	farewell = 250
	// renewAgain is when a renewal that did not work is tried again.
	renewAgain = time.Hour
)

// stage is how far a connect got.
type stage int

const (
	dialing  stage = iota // nothing answered
	securing              // TLS: the broker's certificate, or what it says of ours
	joining               // MQTT: CONNECT and the subscriptions
)

// connectError is a connect that did not succeed.
type connectError struct {
	stage stage
	err   error
}

func (e *connectError) Error() string { return fmt.Sprintf("connect: %v", e.err) }
func (e *connectError) Unwrap() error { return e.err }

// certain says whether the broker has said that it does not want the hub, or the hub cannot trust
// the broker: a new certificate may help with both. A connection that was only closed says neither.
func (e *connectError) certain() bool {
	var remote *net.OpError
	var verification *tls.CertificateVerificationError
	return errors.Is(e.err, packets.ErrorRefusedNotAuthorised) ||
		errors.Is(e.err, packets.ErrorRefusedBadUsernameOrPassword) ||
		errors.As(e.err, &remote) && remote.Op == "remote error" || // a TLS alert
		errors.As(e.err, &verification)
}

// session is one connection to the broker. It returns nil when it was ended in good order,
// otherwise why it ended.
func (h *Hub) session(ctx context.Context, interrupted <-chan struct{}) error {
	g, err := dial(ctx, h.identity)
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.current = g
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		h.current = nil
		h.mu.Unlock()
		_ = g.Close()
	}()

	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	client, err := h.join(ctx, g, end)
	if err != nil {
		return err
	}
	defer client.Disconnect(farewell)
	h.admission.connected()
	h.cfg.Log.Info("connected", "broker", h.identity.Broker)

	connection := h.c.connect()
	defer h.c.disconnect()
	s := &sender{hub: h, client: client, connection: connection}
	if err := s.subscribe(ctx); err != nil {
		return &connectError{joining, err}
	}
	h.workers.run(func() { s.run(ctx, end) })

	renew := time.NewTimer(
		max(renewAgain, time.Until(h.identity.leaf.NotAfter.Add(-h.cfg.RenewBefore))),
	)
	defer renew.Stop()
	select {
	case <-ctx.Done():
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
			return cause
		}
	case <-interrupted:
	case <-renew.C:
	}
	return nil
}

// dial opens a TLS connection to the broker.
func dial(ctx context.Context, i *identity) (*gate, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", i.host)
	if err != nil {
		return nil, &connectError{dialing, err}
	}
	cfg := i.tlsConfig()
	if cfg.ServerName, _, err = net.SplitHostPort(i.host); err != nil {
		_ = raw.Close()
		return nil, &connectError{dialing, err}
	}
	conn := tls.Client(raw, cfg)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, &connectError{securing, err}
	}
	return newGate(conn, raw), nil
}

// join makes an MQTT client of a connection. lost is called when the connection is lost later.
func (h *Hub) join(
	ctx context.Context, g *gate, lost context.CancelCauseFunc,
) (mqtt.Client, error) {
	opts := mqtt.NewClientOptions().
		AddBroker(h.identity.Broker).
		SetClientID(string(h.id)).
		SetProtocolVersion(4). // 3.1.1
		SetCleanSession(true).
		SetKeepAlive(h.cfg.KeepAlive).
		SetPingTimeout(min(10*time.Second, h.cfg.KeepAlive)).
		SetConnectTimeout(connectTimeout).
		SetWriteTimeout(writeTimeout).
		SetAutoReconnect(false). // runLink does, since it may have to enrol first
		SetOrderMatters(true).   // acks come in order, and requests are handed on at once
		SetCustomOpenConnectionFn(func(*url.URL, mqtt.ClientOptions) (net.Conn, error) { return g, nil }).
		SetConnectionLostHandler(func(_ mqtt.Client, err error) { lost(fmt.Errorf("connection lost: %w", err)) })
	client := mqtt.NewClient(opts)
	token := client.Connect()
	select {
	case <-token.Done():
	case <-ctx.Done():
		g.cut()
		<-token.Done()
	}
	if err := token.Error(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, &connectError{joining, err}
	}
	return client, nil
}
