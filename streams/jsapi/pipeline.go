package jsapi

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// pipelineTimeout is how long the broker may take to acknowledge a message of a Pipeline.
const pipelineTimeout = 30 * time.Second

// Pipeline stores messages in one stream, in the order in which they are sent, without waiting for
// each to be stored. It belongs to one goroutine. It is for bulk loads: unlike nats.go's
// PublishAsync it reports the first error to the sender and needs no goroutine.
type Pipeline struct {
	nc    *nats.Conn
	inbox string
	acks  *nats.Subscription
	limit int
	// unacked is how many messages are on their way.
	unacked int
}

// NewPipeline returns a pipeline with at most limit messages on their way. The caller must Close
// it.
func NewPipeline(nc *nats.Conn, limit int) (*Pipeline, error) {
	p := &Pipeline{nc: nc, inbox: nc.NewInbox(), limit: limit}
	var err error
	if p.acks, err = nc.SubscribeSync(p.inbox); err != nil {
		return nil, fmt.Errorf("open a pipeline: %w", err)
	}
	return p, nil
}

// Close ends the subscription to acknowledgements.
func (p *Pipeline) Close() { _ = p.acks.Unsubscribe() } // fails only with the connection

// Send sends a message. It waits while as many as the limit are on their way. The error may be that
// of an earlier message; it fails like Append, and after an error some of the messages
// sent may be stored.
func (p *Pipeline) Send(ctx context.Context, msg *nats.Msg) error {
	if err := p.await(ctx, p.limit-1); err != nil {
		return err
	}
	msg.Reply = p.inbox
	p.unacked++
	return p.nc.PublishMsg(msg)
}

// Wait returns once every message sent is stored.
func (p *Pipeline) Wait(ctx context.Context) error { return p.await(ctx, 0) }

// await waits until at most that many messages are on their way.
func (p *Pipeline) await(ctx context.Context, most int) error {
	if p.unacked <= most {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pipelineTimeout)
	defer cancel()
	for p.unacked > most {
		ack, err := p.acks.NextMsgWithContext(ctx)
		if err != nil {
			return sendError(err)
		}
		if Field(ack.Header, headerStatus) != "" {
			return fmt.Errorf("%w: %w", ErrNoStream, nats.ErrNoResponders)
		}
		if _, err := readAck(ack.Data); err != nil {
			return err
		}
		p.unacked--
	}
	return nil
}
