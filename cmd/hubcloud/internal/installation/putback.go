package installation

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
	"hubcloud/streams/broker"
	"hubcloud/streams/directory"
)

// putBack creates a directory that is gone, with the events of the source. How many later events
// are lost is not known. Without a source the directory is empty.
func (f FillDirectory) putBack(ctx context.Context) (Filled, error) {
	filled := Filled{Restored: []uint64{}, Lost: []uint64{}, Gone: true}
	switch {
	case f.External:
		return filled, errors.New(
			"the store has no directory: copy the stream's folder into it, from another server's store " +
				"or an older copy of this one",
		)
	case f.Source == "" && !f.AcceptLoss:
		return filled, errors.New("name the folder with the backup")
	}
	var messages []broker.StoredMessage
	if f.Source != "" {
		if err := f.readSource(ctx, func(m broker.StoredMessage) {
			messages = append(messages, m)
		}); err != nil {
			return filled, err
		}
	}
	events, err := f.consecutive(messages, &filled)
	if err != nil {
		return filled, err
	}
	return filled, broker.OnStore(ctx, f.Store, f.Logger, func(nc *nats.Conn) error {
		return directory.PutBack(ctx, &streams.Conns{Cloud: nc}, events)
	})
}

// consecutive returns the messages with the sequences from 1 on, with the loss recorded where one
// is missing.
func (f FillDirectory) consecutive(
	messages []broker.StoredMessage, filled *Filled,
) (events []*nats.Msg, err error) {
	origin := OperatorOrigin()
	for _, m := range messages {
		for next := uint64(len(events) + 1); next < m.Seq; next++ {
			lost, err := directory.EncodeLost(origin, next)
			if err != nil {
				return nil, err
			}
			filled.Lost = append(filled.Lost, next)
			events = append(events, &nats.Msg{Subject: streams.LostSubject, Data: lost})
		}
		filled.Restored = append(filled.Restored, m.Seq)
		events = append(events, &nats.Msg{Subject: m.Subject, Data: m.Data})
	}
	if len(filled.Lost) > 0 && !f.AcceptLoss {
		return nil, fmt.Errorf(
			"%d events of the directory are not in %q either: give a newer copy, or --accept-loss as "+
				"well", len(filled.Lost), f.Source,
		)
	}
	return events, nil
}
