package feed

import (
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/views"
)

// stored is a message of a hub's stream, from the feed or from a direct get.
type stored struct {
	seq  uint64
	data []byte
	// event reports whether the message is an event, and state whether it is a state. Otherwise it
	// is the record of a command.
	event, state bool
	// at is when the record was stored.
	at time.Time
	// events is what journal.Record.Events has for an event, and number what Through has.
	events, number uint64
	// epoch and org are an event's or a state's; org may be empty.
	epoch domain.EpochID
	org   string
	// ownLog and connection are an event's, as they were appended.
	ownLog, connection string
}

// parseStored reads the headers of a message.
func parseStored(seq uint64, header nats.Header, data []byte) (m stored, err error) {
	m.seq, m.data = seq, data
	if m.at, err = views.Time(header); err != nil {
		return m, fmt.Errorf("sequence %d: %w", m.seq, err)
	}
	m.event = streams.IsEventSubject(jsapi.Field(header, jsapi.HeaderSubject))
	if !m.event {
		var state []byte
		if state, m.state, err = views.State(header); err != nil {
			return m, fmt.Errorf("sequence %d: %w", m.seq, err)
		}
		if !m.state {
			return m, nil
		}
		m.data = state
	}
	if m.events, err = numberIn(header, views.HeaderEvents); err == nil {
		m.number, err = numberIn(header, views.HeaderThrough)
	}
	if err != nil {
		return m, fmt.Errorf("sequence %d: %w", m.seq, err)
	}
	m.org = jsapi.Field(header, views.HeaderOrg)
	m.ownLog = jsapi.Field(header, views.HeaderOwnLog)
	m.connection = jsapi.Field(header, views.HeaderConnection)
	if m.epoch, err = domain.ParseEpochID(jsapi.Field(header, views.HeaderEpoch)); err != nil {
		return m, fmt.Errorf("sequence %d: %w", m.seq, err)
	}
	return m, nil
}

// numberIn returns the number in a header, 0 without the header.
func numberIn(header nats.Header, name string) (n uint64, err error) {
	text := jsapi.Field(header, name)
	if text == "" {
		return 0, nil
	}
	if n, err = strconv.ParseUint(text, 10, 64); err != nil {
		return 0, fmt.Errorf("header %s: %w", name, err)
	}
	return n, nil
}

// parsePublished reads a message of the feed.
func parsePublished(msg *nats.Msg) (stored, error) {
	seq, err := jsapi.Sequence(msg)
	if err != nil {
		return stored{}, err
	}
	return parseStored(seq, msg.Header, msg.Data)
}

func (m stored) encode() (domain.EncodedEvent, error) {
	e, err := encode(m.epoch, m.seq, m.at, m.data)
	e.Number = m.events
	return e, err
}
