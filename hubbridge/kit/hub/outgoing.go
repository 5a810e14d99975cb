package hub

import (
	"encoding/json"
	"time"

	"hubcloud/hubbridge/protocol"
)

// Message is a message to publish to hub/<id>/<Suffix>.
type Message struct {
	Suffix  string
	Payload []byte
	// First and Last are the numbers of the first and last event of an events message; 0 in a
	// hello.
	First, Last uint64
}

// Connect begins a connection; a hello is its first message. It returns the number of the
// connection. NextMessage and HandleAck do nothing for numbers of former connections, so goroutines
// that still run for one take no messages from its successor.
func (e *Engine) Connect() (connection uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.connection++
	e.window.Connect()
	return e.connection
}

// Disconnect ends the connection.
func (e *Engine) Disconnect() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.connection++
	e.window.Disconnect()
	e.changes.Send()
}

// NextMessage returns the next message to send and counts it as sent: if the message is lost, no
// ack arrives and its events are sent again. Call Sync before publishing it.
//
// If there is nothing to send, m.Suffix is empty, and the caller calls NextMessage again at the
// time due, or when the engine wakes it; a zero due means only then.
func (e *Engine) NextMessage(connection uint64, now time.Time) (m Message, due time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if connection != e.connection {
		return Message{}, time.Time{}
	}
	oldest, newest := e.journal.Bounds()
	step := e.window.Next(now, oldest, newest)
	switch {
	case step.Hello:
		e.window.HelloSent(now)
		return Message{Suffix: "hello", Payload: e.hello(oldest, newest)}, time.Time{}
	case step.From != 0:
		const frame = len(`{"log":"","events":[]}`)
		events := e.journal.Events(
			step.From, int(min(step.Limit, uint64(e.cfg.Batch))),
			protocol.MaxMessageBytes-frame-len(e.journal.LogID()),
		)
		if len(events) == 0 {
			return Message{}, now // dropped since Bounds: decide again
		}
		m = Message{Suffix: "events", First: step.From, Last: step.From + uint64(len(events)) - 1}
		m.Payload = eventsMessage(e.journal.LogID(), events)
		e.window.EventsSent(m.Last, now)
		return m, time.Time{}
	}
	return Message{}, step.Wake
}

func (e *Engine) hello(oldest, newest uint64) []byte {
	trusted := !e.clockUnknown
	return mustJSON(protocol.Hello{
		Protocol: protocol.Version, Log: e.journal.LogID(), Oldest: oldest, Newest: newest,
		ClockTrusted: &trusted,
		Firmware:     &protocol.Firmware{Version: e.cfg.Firmware}, Network: e.cfg.Network,
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

// HandleAck handles an ack and returns the number through which events are acknowledged. It returns
// false, and changes nothing, for an unreadable ack or one of another log or connection.
func (e *Engine) HandleAck(
	connection uint64, payload []byte, now time.Time,
) (through uint64, ok bool) {
	var a protocol.Ack
	if json.Unmarshal(payload, &a) != nil || a.Through > protocol.MaxNumber {
		return 0, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if connection != e.connection || a.Log != e.journal.LogID() {
		return 0, false
	}
	e.journal.Ack(a.Through)
	e.window.Ack(a.Through, now)
	e.acked = max(e.acked, a.Through)
	e.notify()
	return a.Through, true
}
