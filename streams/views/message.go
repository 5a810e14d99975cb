package views

import (
	"bytes"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams/journal"
)

// message is a message for the broker that is used for one record after the other, since it is
// encoded when it is sent. It belongs to one goroutine.
type message struct {
	nats.Msg
	epochID domain.EpochID
	epoch   string
}

var stateBody = []byte(StateBody)

func newMessage() *message { return &message{Msg: nats.Msg{Header: make(nats.Header, 16)}} }

// set makes it the message of a record in the view of its hub, without conditions.
func (m *message) set(r *journal.Record) {
	clear(m.Header)
	m.Subject, m.Data = r.Kind.Subject(r.Hub), r.Payload
	m.Header[HeaderTime] = []string{FormatTime(r.Time)}
	if r.Kind == journal.KindCommand {
		return
	}
	if r.Kind == journal.KindState {
		m.Data = stateBody
		m.Header[HeaderState] = []string{FormatState(r.Payload)}
	}
	if r.Kind.IsEvent() {
		m.Header[HeaderEvents] = []string{strconv.FormatUint(r.Events, 10)}
	}
	if m.epoch == "" || m.epochID != r.EpochID {
		m.epochID, m.epoch = r.EpochID, r.EpochID.String()
	}
	m.Header[HeaderEpoch] = []string{m.epoch}
	if r.OrgID != "" {
		m.Header[HeaderOrg] = []string{r.OrgID}
	}
	if r.OwnLog != "" {
		m.Header[HeaderOwnLog] = []string{r.OwnLog}
		m.Header[HeaderThrough] = []string{strconv.FormatUint(r.Through, 10)}
	}
	if r.Connection != "" {
		m.Header[HeaderConnection] = []string{r.Connection}
	}
}

// has reports whether a stored message is the message of a record.
func (m *message) has(stored *jetstream.RawStreamMsg, r *journal.Record) bool {
	m.set(r)
	for name, values := range m.Header {
		if stored.Header.Get(name) != values[0] {
			return false
		}
	}
	return stored.Subject == m.Subject && bytes.Equal(stored.Data, m.Data)
}
