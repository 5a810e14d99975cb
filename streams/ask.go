package streams

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// askPatience bounds how long Ask tries when the context has no earlier deadline: a cluster
	// that lost a server has new leaders within ten seconds.
	askPatience = 15 * time.Second
	// askTimeout bounds one try: a question that went to a leader that is gone is never answered, a
	// repetition finds the next one.
	askTimeout = 2 * time.Second
	// askPause is the pause after an answer that there is no leader.
	askPause = 100 * time.Millisecond
	// setUpPatience bounds how long SetUp tries, and setUpTimeout one try: a stream is made on
	// disks that may be busy, and with three copies where one of three servers is away it takes
	// about as long as that.
	setUpPatience = time.Minute
	setUpTimeout  = 5 * time.Second
)

// Ask asks the broker's JetStream API what may be asked twice, and gives the answer. In a cluster a
// stream has no leader for some seconds after a server was lost; Ask asks again until there is one,
// for 15 s or until ctx ends. Its error is that of the last try.
func Ask(ctx context.Context, nc *nats.Conn, subject string, question []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	var answer []byte
	err := persist(ctx, askTimeout, func(ctx context.Context) (err error) {
		answer, err = askOnce(ctx, nc, subject, question)
		return err
	})
	return answer, err
}

// SetUp makes or looks for what is declared, again and again as Ask does, for a minute or until ctx
// ends: a question that went to a leader that is gone would be waited for until ctx ends. do may
// run more than once.
func SetUp(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, setUpPatience)
	defer cancel()
	return persist(ctx, setUpTimeout, do)
}

// Persist does what may be done twice, again and again until the broker answers, for 15 s or until
// ctx ends.
func Persist(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	return persist(ctx, askTimeout, do)
}

// persist repeats what the broker does not answer, each time with a timeout of its own, until ctx
// ends. Its error is that of the last try.
func persist(ctx context.Context, timeout time.Duration, do func(ctx context.Context) error) error {
	for {
		try, cancel := context.WithTimeout(ctx, timeout)
		err := do(try)
		cancel()
		if err == nil || !unanswered(err) || ctx.Err() != nil {
			return err
		}
		if errors.Is(err, context.DeadlineExceeded) {
			continue // it has waited
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(askPause):
		}
	}
}

// unanswered says whether an error is that nobody could answer at the moment.
func unanswered(err error) bool {
	var refusal *jetstream.APIError
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrNoResponders) ||
		errors.Is(err, errNoLeader) ||
		errors.Is(err, jetstream.ErrNoStreamResponse) ||
		errors.As(err, &refusal) && refusal.Code == statusUnavailable
}

// errNoLeader says that the broker cannot answer at the moment.
var errNoLeader = errors.New("the broker has no leader for this at the moment")

// noLeaderWithin is how far from its beginning an answer says so. What is stored may hold the same
// text.
const noLeaderWithin = 160

// statusUnavailable is the status by which the broker's answer says so, and noLeader how it stands
// there.
const statusUnavailable = 503

var noLeader = [][]byte{
	[]byte(`"error":{"code":503,`),
	// Every server that keeps the stream is away.
	[]byte(`"err_code":10118,`),
}

func askOnce(ctx context.Context, nc *nats.Conn, subject string, question []byte) ([]byte, error) {
	msg, err := nc.RequestWithContext(ctx, subject, question)
	if err != nil {
		return nil, fmt.Errorf("ask the broker: %w", err)
	}
	for _, sign := range noLeader {
		if head := msg.Data[:min(len(msg.Data), noLeaderWithin)]; bytes.Contains(head, sign) {
			return nil, fmt.Errorf("%w: %s", errNoLeader, msg.Data)
		}
	}
	return msg.Data, nil
}

// Passing reports whether an error is of a fault that passes: the broker cannot be reached, or a
// stream has no leader at the moment, or an answer was lost. ErrUnsure is among them: whether
// something was stored is then not known. So is a stream that is not there: every stream that the
// service asks is declared at its start, and a server that has just started, or is cut off, does
// not know of it.
func Passing(err error) bool {
	var refusal *BrokerError
	return unanswered(err) || errors.Is(err, ErrNoStream) || errors.Is(err, ErrUnsure) || errors.Is(err, ErrDoubtful) ||
		errors.Is(err, nats.ErrConnectionClosed) ||
		errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrReconnectBufExceeded) ||
		errors.Is(err, nats.ErrDisconnected) ||
		errors.As(err, &refusal) && (refusal.Status == statusUnavailable || refusal.Code == codeStreamNotFound)
}
