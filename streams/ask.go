package streams

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// askPatience bounds how long Ask tries when the context has no earlier deadline: a cluster that lost a server has new leaders within ten seconds.
	askPatience = 15 * time.Second
	// askTimeout bounds one try: a question that went to a leader that is gone is never answered, a repetition finds the next one.
	askTimeout = 2 * time.Second
	// askPause is the pause after an answer that there is no leader.
	askPause = 100 * time.Millisecond
)

// Ask asks the broker's JetStream API what may be asked twice, and gives the answer. In a cluster a stream has no leader for some seconds after
// a server was lost; Ask asks again until there is one, for 15 s or until ctx ends. Its error is that of the last try.
func Ask(ctx context.Context, nc *nats.Conn, subject string, question []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	for {
		answer, err := askOnce(ctx, nc, subject, question)
		again := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrNoResponders) || errors.Is(err, errNoLeader)
		if err == nil || !again || ctx.Err() != nil {
			return answer, err
		}
		if errors.Is(err, context.DeadlineExceeded) {
			continue // it has waited
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(askPause):
		}
	}
}

// errNoLeader says that the broker cannot answer at the moment.
var errNoLeader = errors.New("the broker has no leader for this at the moment")

// noLeader is how the broker's answer says so: with the status 503.
var noLeader = []byte(`"error":{"code":503,`)

func askOnce(ctx context.Context, nc *nats.Conn, subject string, question []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	msg, err := nc.RequestWithContext(ctx, subject, question)
	if err != nil {
		return nil, fmt.Errorf("ask the broker: %w", err)
	}
	if bytes.Contains(msg.Data, noLeader) {
		return nil, fmt.Errorf("%w: %s", errNoLeader, msg.Data)
	}
	return msg.Data, nil
}
