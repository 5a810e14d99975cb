package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"hubcloud/hubbridge/protocol"
)

const (
	// renewRetry is the least time until a session ends to renew its certificate, so that a failed
	// renewal is not repeated at once.
	renewRetry = time.Hour
	// maxRequests is the most requests that run concurrently. Further ones are answered with busy,
	// which the cloud reports as hub_error.
	maxRequests = 256
)

// session is one connection of a hub. One goroutine reads, one sends, and each request has its own.
type session struct {
	hub        *Hub
	conn       *conn
	connection uint64
	slots      chan struct{} // holds a value per running request
	packets    atomic.Uint64 // how many have been read
}

// runSession connects to the broker and serves the connection. It returns nil if ctx, interrupted
// or a due renewal of the certificate ended the session, and otherwise the cause of the failure: a
// *connectError if the connection was not established.
func (h *Hub) runSession(ctx context.Context, interrupted <-chan struct{}) error {
	var c *conn
	if err := h.inSlot(ctx, func() (err error) {
		c, err = connect(ctx, h.cfg, h.identity)
		return err
	}); err != nil {
		return err
	}
	h.schedule.connected()
	h.cfg.Logger.Info("connected", "broker", h.identity.Broker)
	s := &session{
		hub: h, conn: c, connection: h.engine.connect(), slots: make(chan struct{}, maxRequests),
	}
	defer h.engine.disconnect()
	ctx, end := context.WithCancelCause(ctx)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		end(s.send(ctx, interrupted))
		c.goodbye() // ends read
	}()
	end(fmt.Errorf("connection lost: %w", s.read(ctx)))
	<-sent
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// read handles what the broker sends until the connection ends.
func (s *session) read(ctx context.Context) error {
	for {
		suffix, payload, err := s.conn.read()
		if err != nil {
			return err
		}
		s.packets.Add(1)
		switch suffix {
		case "ack":
			s.hub.cfg.OnMessage(s.conn.prefix+suffix, payload)
			through, ok := s.hub.engine.handleAck(s.connection, payload, time.Now())
			if ok {
				s.hub.cfg.OnAck(through)
			}
		case "request":
			s.hub.cfg.OnMessage(s.conn.prefix+suffix, payload)
			s.handleRequest(ctx, payload)
		}
	}
}

// send publishes the engine's messages and pings, until ctx, interrupted or a due renewal of the
// certificate ends the session, and then returns nil.
func (s *session) send(ctx context.Context, interrupted <-chan struct{}) error {
	cfg := &s.hub.cfg
	renew := time.NewTimer(
		max(renewRetry, time.Until(s.hub.identity.notAfter().Add(-cfg.RenewBefore))),
	)
	defer renew.Stop()
	// The broker ends a connection that is silent for one and a half times its keep-alive.
	ping := time.NewTicker(cfg.KeepAlive * 3 / 4)
	defer ping.Stop()
	due := time.NewTimer(0)
	defer due.Stop()
	pinged := s.packets.Load() - 1 // how many packets had been read at the last ping
	for {
		m, wake := s.hub.engine.nextMessage(s.connection, time.Now())
		if m.Suffix != "" {
			if err := s.hub.engine.sync(); err != nil {
				return err
			}
			if err := s.publish(m.Suffix, m.Payload); err != nil {
				return err
			}
		} else if wake.IsZero() {
			due.Stop()
		} else {
			due.Reset(max(0, time.Until(wake)))
		}
		var more <-chan struct{} // ready while there are messages to send
		if m.Suffix != "" {
			more = closed
		}
		select {
		case <-ctx.Done():
			return nil
		case <-interrupted:
			return nil
		case <-renew.C:
			return nil
		case <-ping.C:
			read := s.packets.Load()
			if read == pinged {
				return errors.New("the broker did not answer a ping")
			}
			pinged = read
			if err := s.conn.ping(); err != nil {
				return err
			}
		case <-due.C:
		case <-s.hub.sendWake:
		case <-more:
		}
	}
}

// closed is a channel from which a receive never waits.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// publish publishes to a topic of the hub with QoS 0. Messages that are lost are sent again by the
// rules of the protocol.
func (s *session) publish(suffix string, payload []byte) error {
	s.hub.cfg.OnMessage(s.conn.prefix+suffix, payload)
	return s.conn.publish(suffix, payload)
}

// handleRequest runs a request in a goroutine, since the reader must go on.
func (s *session) handleRequest(ctx context.Context, payload []byte) {
	req, err := decodeRequest(payload)
	if err != nil {
		s.hub.cfg.Logger.Warn("request ignored", "error", err)
		return
	}
	select {
	case s.slots <- struct{}{}:
	default:
		s.hub.workers.run(func() {
			s.respond(req, protocol.Response{ID: req.ID, Error: &protocol.Error{
				Type: "busy", Message: fmt.Sprintf("the hub is running %d requests", maxRequests),
			}})
		})
		return
	}
	s.hub.workers.run(func() {
		defer func() { <-s.slots }()
		ctx, cancel := ctx, context.CancelFunc(func() {})
		if ms := min(req.TimeoutMS, time.Hour.Milliseconds()); ms > 0 {
			ctx, cancel = context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
		}
		defer cancel()
		response := s.hub.engine.HandleRequest(ctx, s.hub.cfg.Handler, req, time.Now())
		if ctx.Err() == nil { // otherwise the cloud no longer listens
			s.respond(req, response)
		}
	})
}

func (s *session) respond(req protocol.Request, response protocol.Response) {
	payload, err := json.Marshal(response)
	if err != nil {
		s.hub.cfg.Logger.Error("response not encoded", "method", req.Method, "error", err)
		return
	}
	if err := s.publish("response/"+req.Token, payload); err != nil {
		s.conn.close() // ends the session; the cloud asks again
	}
}
