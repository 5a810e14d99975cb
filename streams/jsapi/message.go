package jsapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

type messageResponse struct {
	response
	Message *struct {
		Subject  string    `json:"subject"`
		Sequence uint64    `json:"seq"`
		Header   []byte    `json:"hdrs"`
		Data     []byte    `json:"data"`
		Time     time.Time `json:"time"`
	} `json:"message"`
}

// messageQuestion asks for one message: with the sequence From, the last of a subject, or the first
// from From on of a filter.
type messageQuestion struct {
	From    uint64 `json:"seq,omitempty"`
	LastFor string `json:"last_by_subj,omitempty"`
	NextFor string `json:"next_by_subj,omitempty"`
}

// GetLast returns the last message of a subject from the stream's leader. Errors: ErrNotFound,
// ErrNoStream, ErrNoLeader.
//
// A deposed leader may answer from an old state for some seconds. Callers that write must do so on
// condition of the sequence that they read: only the true leader stores anything.
func (a API) GetLast(ctx context.Context, stream, subject string) (*jetstream.RawStreamMsg, error) {
	return a.get(ctx, stream, messageQuestion{LastFor: subject})
}

// Get returns the message with a sequence from the stream's leader. Errors are as for GetLast.
func (a API) Get(
	ctx context.Context, stream string, sequence uint64,
) (*jetstream.RawStreamMsg, error) {
	return a.get(ctx, stream, messageQuestion{From: sequence})
}

// GetNext returns the first message from a sequence on whose subject matches the filter, from the
// stream's leader. Errors are as for GetLast.
func (a API) GetNext(
	ctx context.Context, stream string, from uint64, filter string,
) (*jetstream.RawStreamMsg, error) {
	return a.get(ctx, stream, messageQuestion{From: from, NextFor: filter})
}

// GetDirect returns the message with a sequence, or ErrNotFound, from any replica. A replica that
// is behind does not have it yet. It asks once.
func (a API) GetDirect(ctx context.Context, stream string, sequence uint64) (Message, error) {
	answer, err := a.nc.RequestWithContext(
		ctx, a.prefix+".DIRECT.GET."+stream, fmt.Appendf(nil, `{"seq":%d}`, sequence),
	)
	if errors.Is(err, nats.ErrNoResponders) {
		err = fmt.Errorf("%w: %w", ErrNoStream, err)
	}
	if err == nil {
		switch status := Field(answer.Header, headerStatus); status {
		case "":
			return Message{Sequence: sequence, Header: answer.Header, Data: answer.Data}, nil
		case "404":
			err = ErrNotFound
		default:
			err = fmt.Errorf("status %s: %s", status, Field(answer.Header, headerDescription))
		}
	}
	return Message{}, fmt.Errorf("get message %d of stream %s: %w", sequence, stream, err)
}

// Purge removes the messages of a stream that match a filter and have a sequence before one.
func (a API) Purge(ctx context.Context, stream, filter string, before uint64) error {
	question := struct {
		Filter string `json:"filter"`
		Before uint64 `json:"seq"`
	}{filter, before}
	if _, err := request[eraseResponse](ctx, a, "STREAM.PURGE."+stream, question, nil); err != nil {
		return fmt.Errorf("purge %s of stream %s: %w", filter, stream, err)
	}
	return nil
}

func (a API) get(
	ctx context.Context, stream string, question messageQuestion,
) (*jetstream.RawStreamMsg, error) {
	answer, err := request[messageResponse](ctx, a, "STREAM.MSG.GET."+stream, question, nil)
	if err != nil {
		return nil, fmt.Errorf("get message of stream %s: %w", stream, err)
	}
	m := answer.Message
	if m == nil {
		return nil, fmt.Errorf("get message of stream %s: unreadable answer: no message", stream)
	}
	msg := &jetstream.RawStreamMsg{
		Subject: m.Subject, Sequence: m.Sequence, Data: m.Data, Time: m.Time,
	}
	if len(m.Header) > 0 {
		if msg.Header, err = nats.DecodeHeadersMsg(m.Header); err != nil {
			return nil, fmt.Errorf(
				"get message of stream %s: header of sequence %d: %w", stream, m.Sequence, err,
			)
		}
	}
	return msg, nil
}

type eraseResponse struct {
	response
	Success bool `json:"success"`
}

// Erase removes a message from a stream and overwrites its bytes. It returns nil as well if the
// stream's leader does not have the message any more. A leader that is deposed and cut off removes
// nothing, since its followers must agree.
func (a API) Erase(ctx context.Context, stream string, sequence uint64) error {
	answer, err := request[eraseResponse](
		ctx, a, "STREAM.MSG.DELETE."+stream, messageQuestion{From: sequence}, nil,
	)
	var answered *jetstream.APIError
	switch {
	case err == nil && answer.Success:
		return nil
	case err == nil:
		err = errors.New("the broker reports no success")
	case !errors.As(err, &answered):
		return fmt.Errorf("erase message %d of stream %s: %w", sequence, stream, err)
	}
	// The broker has no error code of its own for a message that is gone.
	if _, getErr := a.Get(ctx, stream, sequence); errors.Is(getErr, ErrNotFound) {
		return nil
	}
	return fmt.Errorf("erase message %d of stream %s: %w", sequence, stream, err)
}
