package virtualhub

import (
	"context"
	"errors"
	"fmt"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"hubcloud/hubbridge/protocol"
)

// maxRequests is how many requests are worked on at a time. More are answered busy, which the cloud
// takes for a hub_error.
const maxRequests = 256

// sender is what a connection says and hears.
type sender struct {
	hub        *Hub
	client     mqtt.Client
	connection uint64
	busy       chan struct{} // a place for each request under way
}

func (s *sender) topic(suffix string) string { return "hub/" + string(s.hub.id) + "/" + suffix }

// subscribe subscribes to ack and request. Until it has returned nothing is sent.
func (s *sender) subscribe(ctx context.Context) error {
	s.busy = make(chan struct{}, maxRequests)
	s.client.AddRoute(
		s.topic("ack"),
		func(_ mqtt.Client, m mqtt.Message) { s.hub.c.ack(s.connection, m.Payload(), time.Now()) },
	)
	s.client.AddRoute(
		s.topic("request"), func(_ mqtt.Client, m mqtt.Message) { s.request(ctx, m.Payload()) },
	)
	token, _ := s.client.SubscribeMultiple(map[string]byte{
		s.topic("ack"): 0, s.topic("request"): 0,
	}, nil).(*mqtt.SubscribeToken)
	timer := time.NewTimer(connectTimeout)
	defer timer.Stop()
	select {
	case <-token.Done():
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return errors.New("the broker does not answer a subscription")
	}
	if err := token.Error(); err != nil {
		return err
	}
	for topic, code := range token.Result() {
		if code > 2 { // MQTT 3.1.1 section 3.9.3: 0x80 is failure
			return fmt.Errorf("the broker refuses a subscription to %s", topic)
		}
	}
	return nil
}

// run sends what the controller has to send until ctx ends.
func (s *sender) run(ctx context.Context, end context.CancelCauseFunc) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		m, wake := s.hub.c.outgoing(s.connection, time.Now())
		if m.suffix != "" {
			// A number that the cloud has seen must never be given again, not even after a power
			// cut.
			if err := s.hub.c.journal.Sync(); err != nil {
				end(err)
				return
			}
			s.client.Publish(s.topic(m.suffix), 0, false, m.payload)
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
		case <-s.hub.linkWake:
		}
	}
}

// request answers a request, beside others. It must not block: the client hands it messages one by
// one.
func (s *sender) request(ctx context.Context, payload []byte) {
	req, err := decodeRequest(payload)
	if err != nil {
		s.hub.cfg.Log.Warn("a request cannot be read", "error", err)
		return
	}
	select {
	case s.busy <- struct{}{}:
	default:
		s.hub.workers.run(func() {
			s.respond(
				req,
				protocol.Response{
					ID:    req.ID,
					Error: refuse("busy", "the hub has %d requests under way", maxRequests),
				},
			)
		})
		return
	}
	s.hub.workers.run(func() {
		defer func() { <-s.busy }()
		response := s.hub.c.answer(req, time.Now())
		if late := s.hub.c.lateness(); late > 0 {
			timer := time.NewTimer(late)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
				return
			}
		}
		s.respond(req, response)
	})
}

func (s *sender) respond(req protocol.Request, response protocol.Response) {
	s.client.Publish(s.topic("response/"+req.Token), 0, false, []byte(mustJSON(response)))
	if response.Error != nil {
		s.hub.cfg.Log.Debug(
			"request refused", "method", req.Method, "type", response.Error.Type,
			"message", response.Error.Message,
		)
		return
	}
	s.hub.cfg.Log.Debug("request answered", "method", req.Method)
}
