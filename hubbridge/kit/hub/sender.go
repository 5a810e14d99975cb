package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"hubcloud/hubbridge/kit/hub/brokerconn"
	"hubcloud/hubbridge/protocol"
)

// maxRequests is the most requests that run concurrently. Further ones are answered with busy,
// which the cloud reports as hub_error.
const maxRequests = 256

// sender sends and receives the messages of one connection.
type sender struct {
	hub        *Hub
	client     mqtt.Client
	connection uint64
	slots      chan struct{} // holds a value per running request
}

func (s *sender) topic(suffix string) string { return "hub/" + string(s.hub.id) + "/" + suffix }

// subscribe subscribes to acks and requests. The hub must not send before it returns: the broker
// would drop the acks.
func (s *sender) subscribe(ctx context.Context) error {
	s.client.AddRoute(s.topic("ack"), func(_ mqtt.Client, m mqtt.Message) {
		s.hub.cfg.OnMessage(m.Topic(), m.Payload())
		s.hub.engine.HandleAck(s.connection, m.Payload(), time.Now())
	})
	s.client.AddRoute(s.topic("request"), func(_ mqtt.Client, m mqtt.Message) {
		s.hub.cfg.OnMessage(m.Topic(), m.Payload())
		s.handleRequest(ctx, m.Payload())
	})
	token, _ := s.client.SubscribeMultiple(map[string]byte{
		s.topic("ack"): 0, s.topic("request"): 0,
	}, nil).(*mqtt.SubscribeToken)
	timer := time.NewTimer(brokerconn.ConnectTimeout)
	defer timer.Stop()
	select {
	case <-token.Done():
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return errors.New("no answer to the subscriptions")
	}
	if err := token.Error(); err != nil {
		return err
	}
	for topic, code := range token.Result() {
		if code > 2 { // MQTT 3.1.1 section 3.9.3: 0x80 is failure
			return fmt.Errorf("the broker rejected the subscription to %s", topic)
		}
	}
	return nil
}

// publish sends a message to a topic of the hub. It does not wait: messages that are lost are sent
// again by the rules of the protocol.
func (s *sender) publish(suffix string, payload []byte) {
	s.hub.cfg.OnMessage(s.topic(suffix), payload)
	s.client.Publish(s.topic(suffix), 0, false, payload)
}

// run publishes the engine's messages until ctx ends. It calls end if the journal fails.
func (s *sender) run(ctx context.Context, end context.CancelCauseFunc) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		m, wake := s.hub.engine.NextMessage(s.connection, time.Now())
		if m.Suffix != "" {
			if err := s.hub.engine.Sync(); err != nil {
				end(err)
				return
			}
			s.publish(m.Suffix, m.Payload)
			continue
		}
		if wake.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(max(0, time.Until(wake)))
		}
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-s.hub.sendWake:
		}
	}
}

// handleRequest runs a request in a goroutine. It must not block, since the MQTT client delivers
// messages one after the other.
func (s *sender) handleRequest(ctx context.Context, payload []byte) {
	req, err := DecodeRequest(payload)
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

func (s *sender) respond(req protocol.Request, response protocol.Response) {
	payload, err := json.Marshal(response)
	if err != nil {
		s.hub.cfg.Logger.Error("response not encoded", "method", req.Method, "error", err)
		return
	}
	s.publish("response/"+req.Token, payload)
	if response.Error != nil {
		s.hub.cfg.Logger.Debug(
			"request rejected", "method", req.Method, "error_type", response.Error.Type,
			"message", response.Error.Message,
		)
		return
	}
	s.hub.cfg.Logger.Debug("request answered", "method", req.Method)
}
