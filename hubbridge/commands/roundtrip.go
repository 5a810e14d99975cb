package commands

import (
	"context"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
)

const (
	// subscribeTime is how long a connected hub may take to subscribe to its requests, and
	// subscribePause the pause between two attempts to reach it.
	subscribeTime  = 2 * time.Second
	subscribePause = 50 * time.Millisecond
)

// expect returns a new token for a request, and the channel for the answer. The hub publishes the
// answer to the MQTT topic hub/<id>/response/<token>, which is subject at the broker: the token has
// slashes where the subject has dots. The caller must call forget with the subject.
func (c *Caller) expect(hub domain.HubID) (token, subject string, answers <-chan *nats.Msg) {
	answer := make(chan *nats.Msg, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	number := strconv.FormatUint(c.last, 36)
	subject = streams.ResponseSubject(hub, c.replica+"."+number)
	c.pending[subject] = answer
	return c.replica + "/" + number, subject, answer
}

func (c *Caller) forget(subject string) {
	c.mu.Lock()
	delete(c.pending, subject)
	c.mu.Unlock()
}

// receive passes an answer to the call that waits for it. A hub cannot answer for another hub: the
// hub's id is in the subject, and the broker lets a hub publish only under its own id.
func (c *Caller) receive(msg *nats.Msg) {
	c.mu.Lock()
	answers := c.pending[msg.Subject]
	c.mu.Unlock()
	if answers == nil {
		return // the call has ended, or the hub invented the token
	}
	select {
	case answers <- msg:
	default: // a second answer
	}
}

// roundTrip publishes a request and waits for the answer. The answer's subject is the reply subject
// of the request, so the broker reports there when the hub is not subscribed. A hub that has just
// connected subscribes a moment later, so roundTrip publishes again for a while.
func (c *Caller) roundTrip(
	ctx context.Context, hub domain.HubID, subject string, payload []byte, answers <-chan *nats.Msg,
) ([]byte, error) {
	nc, began := c.conns.Shard(hub), time.Now()
	timer := time.NewTimer(c.cfg.Timeout)
	defer timer.Stop()
	for {
		if err := nc.PublishRequest(streams.RequestSubject(hub), subject, payload); err != nil {
			c.cfg.Logger.Warn("request not sent", "hub_id", hub, "error", err)
			return nil, domain.Errorf(
				domain.CodeHubError, "the request could not be sent to the hub",
			)
		}
		select {
		case msg := <-answers:
			if !streams.NoResponders(msg) {
				return msg.Data, nil
			}
		case <-timer.C:
			return nil, domain.Errorf(
				domain.CodeHubTimeout, "the hub did not answer within %s; it may still have acted",
				domain.FormatDuration(c.cfg.Timeout),
			)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if err := c.CheckOnline(ctx, hub); err != nil {
			return nil, err
		}
		if time.Since(began) > min(subscribeTime, c.cfg.Timeout/2) {
			return nil, domain.Errorf(
				domain.CodeHubError,
				"the request could not be sent to the hub: it is connected but not subscribed to requests",
			)
		}
		if !streams.Sleep(ctx, subscribePause) {
			return nil, ctx.Err()
		}
	}
}
