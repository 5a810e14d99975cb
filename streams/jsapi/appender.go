package jsapi

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
)

// Appender stores messages in any number of streams without waiting for each to be stored. Messages
// of one stream are stored in the order in which they were sent. The broker's answers are received
// from Answers and read with ReadAnswer.
//
// Send belongs to one goroutine, and so does receiving from Answers. Unlike Pipeline, an Appender
// leaves it to the caller which message failed and what becomes of those after it: messages that
// carry ExpectEnd are rejected after one that was.
type Appender struct {
	nc      *nats.Conn
	inbox   string
	sub     *nats.Subscription
	answers chan *nats.Msg
}

// Answer is the broker's answer to a message of an Appender.
type Answer struct {
	// Token is the token that the message was sent with.
	Token uint64
	// Sequence is the message's, unless Err is set. Err is one of Append's errors.
	Sequence uint64
	Err      error
}

// NewAppender returns an Appender with space for that many answers, which is the most that the
// caller may let be on their way. More are lost. The caller must Close it.
func NewAppender(nc *nats.Conn, limit int) (*Appender, error) {
	a := &Appender{nc: nc, inbox: nc.NewInbox(), answers: make(chan *nats.Msg, limit)}
	var err error
	if a.sub, err = nc.ChanSubscribe(a.inbox+".*", a.answers); err != nil {
		return nil, fmt.Errorf("open an appender: %w", err)
	}
	return a, nil
}

// Close ends the subscription to answers.
func (a *Appender) Close() { _ = a.sub.Unsubscribe() } // fails only with the connection

// Send sends a message. With a token above 0 the broker answers; with 0 it stores without an
// answer. The message may be reused after Send. An error means that it was not sent.
func (a *Appender) Send(msg *nats.Msg, token uint64) error {
	msg.Reply = ""
	if token > 0 {
		msg.Reply = a.inbox + "." + strconv.FormatUint(token, 10)
	}
	return a.nc.PublishMsg(msg)
}

// Answers returns the channel of the broker's answers, for ReadAnswer. An answer may never come:
// the caller must bound the wait.
func (a *Appender) Answers() <-chan *nats.Msg { return a.answers }

// ReadAnswer reads a message of Answers.
func (a *Appender) ReadAnswer(msg *nats.Msg) Answer {
	text, _ := strings.CutPrefix(msg.Subject, a.inbox+".")
	token, err := strconv.ParseUint(text, 10, 64)
	answer := Answer{Token: token}
	switch {
	case err != nil:
		answer.Err = fmt.Errorf("%w: answer to %s", ErrOutcomeUnknown, msg.Subject)
	case Field(msg.Header, headerStatus) != "":
		answer.Err = fmt.Errorf("%w: %w", ErrNoStream, nats.ErrNoResponders)
	default:
		answer.Sequence, answer.Err = readAck(msg.Data)
	}
	return answer
}
