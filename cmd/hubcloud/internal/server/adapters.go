package server

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/httpapi"
	"hubcloud/streams"
	"hubcloud/streams/hublog"
)

// apiEvents is the hub logs as the API needs them: with readers behind its own interface.
type apiEvents struct{ *hublog.Logs }

// Follow reads what follows a cursor, as it comes.
func (e apiEvents) Follow(
	ctx context.Context, hub domain.HubID, after string,
) (httpapi.EventReader, error) {
	reader, err := e.Logs.Follow(ctx, hub, after)
	if err != nil {
		return nil, err
	}
	return apiReader{reader}, nil
}

// apiReader is a reader of a hub log whose end with the service is told in the API's words.
type apiReader struct{ *hublog.Reader }

// Next gives the events that are there now.
func (r apiReader) Next(limit int) ([]domain.EncodedEvent, error) {
	events, err := r.Reader.Next(limit)
	if errors.Is(err, hublog.ErrClosed) {
		err = httpapi.ErrEventsClosed
	}
	return events, err
}

// grantsBus tells the other replicas what this one grants, over the broker.
type grantsBus struct {
	nc      *nats.Conn
	replica string
}

// Publish tells the others.
func (b grantsBus) Publish(message []byte) error {
	return b.nc.Publish(streams.GrantsSubject(b.replica), message)
}

// Subscribe hears the others.
func (b grantsBus) Subscribe(fn func(message []byte)) (stop func(), err error) {
	own := streams.GrantsSubject(b.replica)
	sub, err := b.nc.Subscribe(streams.GrantsSubject("*"), func(msg *nats.Msg) {
		if msg.Subject != own {
			fn(msg.Data)
		}
	})
	if err != nil {
		return nil, err
	}
	// fails only with the connection, which ends it too
	return func() { _ = sub.Unsubscribe() }, nil
}
