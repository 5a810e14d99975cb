package virtualhub

import (
	"encoding/json"
	"time"

	"hubcloud/hubbridge/protocol"
)

// message is something to publish below hub/<id>/.
type message struct {
	suffix  string
	payload []byte
	// first and last are the numbers of an events message; 0 of others.
	first, last uint64
}

func windowLimit(heedless bool) uint64 {
	if heedless {
		return 0
	}
	return protocol.MaxUnacknowledged
}

// connect begins a connection: hello is what goes out next. It returns the connection's number, by
// which one that has ended is told from the present one: what still runs for it must take nothing
// from its successor.
func (c *controller) connect() (connection uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.connection++
	c.window.Connect()
	return c.connection
}

// disconnect ends it.
func (c *controller) disconnect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.connection++
	c.window.Disconnect()
	c.changes.send()
}

// outgoing is what to send now; an empty message is nothing before wake (zero: before something
// happens). What it returns counts as sent: should it get lost, no ack comes and it is sent again.
// An events message must not go out before the journal is synced.
func (c *controller) outgoing(connection uint64, now time.Time) (m message, wake time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if connection != c.connection {
		return message{}, time.Time{}
	}
	oldest, newest := c.journal.Bounds()
	step := c.window.Next(now, oldest, newest)
	switch {
	case step.Hello:
		c.window.HelloSent(now)
		return message{suffix: "hello", payload: c.hello(oldest, newest)}, time.Time{}
	case step.From != 0:
		const frame = len(`{"log":"","events":[]}`)
		events := c.journal.Events(
			step.From, int(min(step.Limit, uint64(c.cfg.Batch))),
			protocol.MaxMessageBytes-frame-len(c.journal.Log()),
		)
		if len(events) == 0 {
			return message{}, now // let go in between; what to do then is decided anew
		}
		m = message{suffix: "events", first: step.From, last: step.From + uint64(len(events)) - 1}
		m.payload = eventsMessage(c.journal.Log(), events)
		c.window.EventsSent(m.last, now)
		return m, time.Time{}
	}
	return message{}, step.Wake
}

func (c *controller) hello(oldest, newest uint64) []byte {
	trusted := !c.faults.ClockUnknown
	return mustJSON(protocol.Hello{
		Protocol: protocol.Version, Log: c.journal.Log(), Oldest: oldest, Newest: newest,
		ClockTrusted: &trusted,
		Firmware:     &protocol.Firmware{Version: c.cfg.Firmware}, Network: c.cfg.Network,
	})
}

// eventsMessage puts events that are encoded already into a message.
func eventsMessage(log string, events []json.RawMessage) []byte {
	size := len(log) + 32
	for _, e := range events {
		size += len(e) + 1
	}
	out := make([]byte, 0, size)
	out = append(out, `{"log":"`...)
	out = append(out, log...)
	out = append(out, `","events":[`...)
	for i, e := range events {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, e...)
	}
	return append(out, "]}"...)
}

// ack takes an ack from the cloud. What is no ack, or of another log or connection, is passed over.
func (c *controller) ack(
	connection uint64, payload []byte, now time.Time,
) (through uint64, ok bool) {
	var a protocol.Ack
	if json.Unmarshal(payload, &a) != nil || a.Through > protocol.MaxNumber {
		return 0, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if connection != c.connection || a.Log != c.journal.Log() {
		return 0, false
	}
	c.journal.Ack(a.Through)
	c.window.Ack(a.Through, now)
	c.acked = max(c.acked, a.Through)
	c.stir()
	return a.Through, true
}

// Status is where a hub stands.
type Status struct {
	// Connected is true while there is a connection on which the cloud has answered the hub's
	// hello.
	Connected bool
	// Log is the identity of the hub's log.
	Log string
	// Oldest is the lowest number that the hub holds, Newest the highest that it ever gave, Acked
	// the highest that the cloud has acknowledged since the hub was made or reset.
	Oldest, Newest, Acked uint64
}

func (c *controller) status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Status{Connected: c.window.Greeted(), Log: c.journal.Log(), Acked: c.acked}
	s.Oldest, s.Newest = c.journal.Bounds()
	return s
}
