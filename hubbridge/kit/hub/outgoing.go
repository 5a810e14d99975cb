package hub

import (
	"encoding/json"
	"time"

	"hubcloud/hubbridge/protocol"
)

// message is a message to publish to hub/<id>/<Suffix>.
type message struct {
	Suffix  string
	Payload []byte
	// First and Last are the numbers of the first and last event of an events message; 0 in a
	// hello.
	First, Last uint64
}

// connect begins a connection; a hello is its first message. It returns the number of the
// connection. nextMessage and handleAck do nothing for numbers of former connections, so goroutines
// that still run for one take no messages from its successor.
func (e *Engine) connect() (connection uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.connection++
	e.window.connect()
	return e.connection
}

// disconnect ends the connection.
func (e *Engine) disconnect() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.connection++
	e.counts.Disconnections++
	e.window.disconnect()
	e.changes.send()
}

// nextMessage returns the next message to send and counts it as sent: if the message is lost, no
// ack arrives and its events are sent again. Call sync before publishing it.
//
// If there is nothing to send, m.Suffix is empty, and the caller calls nextMessage again at the
// time due, or when the engine wakes it; a zero due means only then.
func (e *Engine) nextMessage(connection uint64, now time.Time) (m message, due time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if connection != e.connection {
		return message{}, time.Time{}
	}
	oldest, newest := e.journal.bounds()
	next := e.window.next(now, oldest, newest)
	switch {
	case next.hello:
		e.window.helloSent(now)
		return message{Suffix: "hello", Payload: e.hello(oldest, newest)}, time.Time{}
	case next.from != 0:
		const frame = len(`{"log":"","events":[]}`)
		events := e.journal.eventsFrom(
			next.from, int(min(next.limit, uint64(e.cfg.Batch))),
			protocol.MaxMessageBytes-frame-len(e.journal.currentLog()),
		)
		if len(events) == 0 {
			return message{}, now // dropped since Bounds: decide again
		}
		m = message{Suffix: "events", First: next.from, Last: next.from + uint64(len(events)) - 1}
		m.Payload = eventsMessage(e.journal.currentLog(), events)
		e.window.eventsSent(m.Last, now)
		if m.First <= e.sent {
			e.counts.Resent += min(e.sent, m.Last) - m.First + 1
		}
		e.sent = max(e.sent, m.Last)
		return m, time.Time{}
	}
	return message{}, next.wake
}

func (e *Engine) hello(oldest, newest uint64) []byte {
	trusted, credentials := !e.clockUnknown, 0
	if _, ok := e.cfg.Handler.(CredentialHandler); ok {
		credentials = protocol.CredentialsVersion
	}
	return mustJSON(protocol.Hello{
		Protocol: protocol.Version, Log: e.journal.currentLog(), Oldest: oldest, Newest: newest,
		ClockTrusted: &trusted,
		Firmware:     &protocol.Firmware{Version: e.cfg.Firmware}, Network: e.cfg.Network,
		Credentials: credentials,
	})
}

// eventsMessage returns an events message of events that are already encoded.
func eventsMessage(logID string, events []json.RawMessage) []byte {
	size := len(logID) + 32
	for _, e := range events {
		size += len(e) + 1
	}
	out := make([]byte, 0, size)
	out = append(out, `{"log":"`...)
	out = append(out, logID...)
	out = append(out, `","events":[`...)
	for i, e := range events {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, e...)
	}
	return append(out, "]}"...)
}

// handleAck handles an ack and returns the number through which events are acknowledged. It returns
// false, and changes nothing, for an unreadable ack or one of another log or connection.
func (e *Engine) handleAck(
	connection uint64, payload []byte, now time.Time,
) (through uint64, ok bool) {
	var a protocol.Ack
	if json.Unmarshal(payload, &a) != nil || a.Through > protocol.MaxNumber {
		return 0, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if connection != e.connection || a.Log != e.journal.currentLog() {
		return 0, false
	}
	e.journal.ack(a.Through)
	e.window.ack(a.Through, now)
	e.acked = max(e.acked, a.Through)
	e.notify()
	return a.Through, true
}
