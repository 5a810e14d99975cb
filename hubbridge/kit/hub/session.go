package hub

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"hubcloud/hubbridge/kit/hub/brokerconn"
)

const (
	// disconnectQuiesceMS is how many milliseconds the MQTT client may take to disconnect.
	disconnectQuiesceMS = 250
	// renewRetry is the least time until a session ends to renew its certificate, so that a failed
	// renewal is not repeated at once.
	renewRetry = time.Hour
)

// runSession connects to the broker and serves the connection. It returns nil if ctx, interrupted
// or a due renewal of the certificate ended the session, and otherwise the cause of the failure: a
// *brokerconn.Error if the connection was not established.
func (h *Hub) runSession(ctx context.Context, interrupted <-chan struct{}) error {
	conn, err := brokerconn.Dial(
		ctx, h.cfg.Dial, h.identity.Address(), h.identity.TLSConfig(),
	)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()

	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	client, err := h.connectMQTT(ctx, conn, end)
	if err != nil {
		return err
	}
	defer client.Disconnect(disconnectQuiesceMS)
	h.schedule.Connected()
	h.cfg.Logger.Info("connected", "broker", h.identity.Broker)

	connection := h.engine.Connect()
	defer h.engine.Disconnect()
	s := &sender{
		hub: h, client: client, connection: connection, slots: make(chan struct{}, maxRequests),
	}
	if err := s.subscribe(ctx); err != nil {
		return &brokerconn.Error{Stage: brokerconn.StageMQTT, Err: err}
	}
	h.workers.run(func() { s.run(ctx, end) })

	renew := time.NewTimer(
		max(renewRetry, time.Until(h.identity.NotAfter().Add(-h.cfg.RenewBefore))),
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

// connectMQTT connects an MQTT client over conn. The client calls lost if it loses the connection
// later.
func (h *Hub) connectMQTT(
	ctx context.Context, conn net.Conn, lost context.CancelCauseFunc,
) (mqtt.Client, error) {
	opts := mqtt.NewClientOptions().
		AddBroker(h.identity.Broker).
		SetClientID(string(h.id)).
		SetProtocolVersion(4). // MQTT 3.1.1
		SetCleanSession(true).
		SetKeepAlive(h.cfg.KeepAlive).
		SetPingTimeout(min(10*time.Second, h.cfg.KeepAlive)).
		SetConnectTimeout(brokerconn.ConnectTimeout).
		SetWriteTimeout(brokerconn.WriteTimeout).
		SetAutoReconnect(false). // runConnections reconnects: the hub may have to enrol first
		SetOrderMatters(true).   // acks must be handled in order; requests start goroutines
		SetCustomOpenConnectionFn(func(*url.URL, mqtt.ClientOptions) (net.Conn, error) {
			return conn, nil
		}).
		SetConnectionLostHandler(func(_ mqtt.Client, err error) {
			lost(fmt.Errorf("connection lost: %w", err))
		})
	client := mqtt.NewClient(opts)
	token := client.Connect()
	select {
	case <-token.Done():
	case <-ctx.Done():
		_ = conn.Close()
		<-token.Done()
	}
	if err := token.Error(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, &brokerconn.Error{Stage: brokerconn.StageMQTT, Err: err}
	}
	return client, nil
}
