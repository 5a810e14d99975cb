package check

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/codec"
	"hubcloud/hubbridge/protocol"
)

// state is what the check knows of the hub. Like its methods, it needs the Check's mutex.
type state struct {
	conn *connection // nil while the hub is not connected
	// connections counts the connections, takeovers those that the hub opened beside another.
	connections, takeovers int
	endedAt                time.Time // when the last connection ended; zero once another has begun
	hellos                 int
	credentials            bool // of the last hello

	log string
	// stored is the number through which the events of the log have arrived without a gap.
	stored uint64
	// highest is the highest number that has arrived.
	highest uint64
	events  map[uint64]event
	decoder codec.EventsDecoder

	// earlier counts the connections with the certificate of an earlier check.
	earlier int
	// distrusted counts the connections that the hub ended because it saw the stranger's
	// certificate, and deceived is whether it went on with one.
	distrusted int
	deceived   bool
	// notes are the notes that have been given.
	notes map[string]bool

	calls    map[string]*call // by token, until they have been answered
	lastCall int

	// stopped is whether no line is to be decided any more.
	stopped bool

	// The script sets these to change what the endpoint does.

	rejectNext    bool // reject the next connection
	showStranger  bool // show the certificate of an authority that the hub does not trust
	withholdAck   bool // of events
	withholdHello bool // of hellos
	// ackNextHello, if set, decides about the ack of the next hello.
	ackNextHello func(protocol.Hello) (through uint64, extra bool)
	// lowered is set while the hub has to ignore a lower through.
	lowered *uint64
	// foreign is whether the last ack was one of an unknown log.
	foreign bool
	// raised is set while the hub's next event must have the number above a higher through.
	raised *uint64
}

// event is an event that has arrived.
type event struct {
	sum  [sha256.Size]byte // of its stored form
	kind string
	// device and data are set for channel events; data is nil for others.
	device int64
	data   *channelData
}

// channelData is the data of channel.desired and channel.observed.
type channelData struct {
	Key      string          `json:"key"`
	Endpoint int64           `json:"endpoint"`
	Value    json.RawMessage `json:"value"`
}

// maxEvents is how many events are kept, so that a hub that sends without end cannot fill memory.
const maxEvents = 20_000

func newState() state {
	return state{events: map[uint64]event{}, calls: map[string]*call{}, notes: map[string]bool{}}
}

// handleMessage handles a published message.
func (c *Check) handleMessage(k *connection, topic string, payload []byte) {
	if k != c.conn {
		return // from a connection that has been taken over
	}
	payload = codec.WithoutBOM(payload)
	prefix := c.topic("")
	suffix, own := strings.CutPrefix(topic, prefix)
	token, isResponse := strings.CutPrefix(suffix, "response/")
	switch {
	case own && suffix == "hello":
		c.handleHello(k, payload)
	case own && suffix == "events":
		c.handleEvents(k, payload)
	case own && isResponse && token != "":
		c.handleResponse(token, payload)
	default:
		c.fail("own-topics", payload, "published to %q; the service drops it", bounded(topic, 100))
	}
}

// handleHello checks a hello and acknowledges it.
func (c *Check) handleHello(k *connection, payload []byte) {
	if k.ackGranted && k.requestGranted {
		c.pass("subscribes-first")
	} else {
		c.fail(
			"subscribes-first", payload,
			"the hello came before the subscriptions to ack and request",
		)
	}
	hello, err := codec.ParseHello(payload)
	var raw protocol.Hello
	switch {
	case errors.Is(err, codec.ErrProtocol):
		c.fail("hello-fields", payload, "protocol is not 1; the service ignores the hello")
		return
	case err != nil:
		c.fail(
			"hello-fields", payload,
			"protocol, log, oldest or newest is missing or invalid, or oldest is "+
				"beyond newest + 1; the service ignores the hello",
		)
		return
	case json.Unmarshal(payload, &raw) == nil && raw.Oldest == 0:
		c.fail("hello-fields", payload, "oldest is 0; it is newest + 1 for a hub that holds no events")
	case hello.Log == c.log && hello.Newest < c.highest:
		c.fail(
			"hello-fields", payload, "newest is %d, but event %d has been sent", hello.Newest,
			c.highest,
		)
	}
	c.pass("hello-fields")
	if hello.Firmware == nil || hello.Network == nil || raw.ClockTrusted == nil {
		c.fail("hello-info", payload, "firmware, network or clock_trusted is missing or invalid")
	}
	c.pass("hello-info")
	c.credentials = hello.Credentials
	c.pass("one-connection")
	k.hellos++
	c.hellos++
	k.helloAt = time.Now()
	c.adoptLog(hello, payload)
	if c.lowered != nil {
		c.fail("lower-through", payload, "a hello followed the lower through %d", *c.lowered)
	}
	if c.withholdHello {
		return
	}
	through, extra := max(c.stored, hello.Oldest-1), false
	if answer := c.ackNextHello; answer != nil {
		c.ackNextHello = nil
		through, extra = answer(protocol.Hello{
			Log: hello.Log, Oldest: hello.Oldest, Newest: hello.Newest,
		})
	}
	c.stored = through
	c.ackHello(k, through, extra)
}

// adoptLog checks the log of a hello against the former one.
func (c *Check) adoptLog(hello codec.Hello, payload []byte) {
	switch {
	case c.log == "":
		c.log, c.stored = hello.Log, hello.Oldest-1
	case hello.Log != c.log:
		c.fail(
			"log-identity", payload, "log is %q, but was %q and the hub was not reset", hello.Log,
			c.log,
		)
		c.log, c.stored, c.highest = hello.Log, hello.Oldest-1, hello.Newest
		c.events = map[uint64]event{}
	case c.connections > 1:
		c.pass("log-identity")
	}
}

// ackHello sends the ack of a hello, which begins the sending.
func (c *Check) ackHello(k *connection, through uint64, extra bool) {
	k.acked = true
	k.next = through + 1
	k.owed = 0
	c.ack(k, c.log, through, extra)
}

// ack notes and sends an ack. extra adds a member that version 1 does not have.
func (c *Check) ack(k *connection, log string, through uint64, extra bool) {
	if log == c.log {
		k.through, k.throughs[through] = through, true
		k.next = max(k.next, through+1)
	}
	message := codec.AppendAck(nil, log, through)
	if extra {
		message = append(bytes.TrimSuffix(message, []byte("}")), `,"later":{"version":2}}`...)
	}
	c.publish(k, "ack", message)
}

// handleEvents checks an events message and acknowledges it, unless acks are withheld. A message
// that the service would drop is acknowledged with what was stored before.
func (c *Check) handleEvents(k *connection, payload []byte) {
	if !k.acked {
		c.fail("no-events-before-ack", payload, "events came before the ack of the connection's hello")
	}
	stored := c.storeEvents(k, payload)
	switch {
	case !c.withholdAck && c.log != "":
		c.ack(k, c.log, c.stored, false)
	case stored:
		if k.owed++; k.owed == 1 {
			k.owedAt = time.Now()
		}
	}
}

// storeEvents checks an events message, and reports whether the service would store it.
func (c *Check) storeEvents(k *connection, payload []byte) bool {
	if len(payload) > protocol.MaxMessageBytes {
		c.fail(
			"message-size", payload, "the message has %d bytes; the service drops it", len(payload),
		)
		return false
	}
	batch, err := c.decoder.Decode(c.hub, payload)
	switch {
	case err != nil:
		c.fail("events-message", payload, "%v; the service drops it", err)
		return false
	case batch.Log != c.log:
		c.fail("events-message", payload, "log is %q, want the hello's, %q", batch.Log, c.log)
		return false
	}
	for i := range batch.Events {
		c.judgeEvent(&batch.Events[i], batch.First+uint64(i), payload)
	}
	if k.acked && !c.judgeNumbers(k, &batch, payload) {
		return false
	}
	for i := range batch.Events {
		c.store(&batch.Events[i], batch.First+uint64(i), payload)
	}
	if last := batch.Last(); batch.First <= c.stored+1 && last > c.stored && !c.withholdAck {
		c.stored = last
	}
	c.pass("events-message", "message-size")
	if k.acked {
		c.pass("no-events-before-ack", "numbering")
	}
	return true
}

// judgeNumbers checks the numbers of a message and reports whether the service would store it.
func (c *Check) judgeNumbers(k *connection, batch *codec.Batch, payload []byte) bool {
	first, last := batch.First, batch.Last()
	switch {
	case first > k.next:
		c.fail(
			"numbering", payload,
			"event %d was sent where event %d was next; the service waits for "+
				"the missing events", first, k.next,
		)
		return false
	case first < k.next && c.raised != nil:
		c.fail(
			"higher-through", payload,
			"event %d was sent after through %d, want %d as the next number", first, *c.raised,
			*c.raised+1,
		)
		c.raised = nil
		k.throughs[first-1] = true
		c.stored = first - 1
	case first < k.next:
		k.resends++
		k.resentAt, k.resentFrom = time.Now(), first
		if c.lowered != nil && first <= k.through {
			c.fail(
				"lower-through", payload,
				"events were sent again from %d after the lower through %d; "+
					"through %d was acknowledged before", first, *c.lowered, k.through,
			)
		} else if k.throughs[first-1] {
			c.pass("sends-from-through")
		} else if c.foreign {
			c.fail(
				"unknown-log", payload,
				"events were sent again from %d, want %d: an ack of log %q "+"counts for nothing",
				first, k.through+1, unknownLog,
			)
		} else {
			c.fail(
				"sends-from-through", payload,
				"events were sent again from %d, want %d, which is through + 1", first, k.through+1,
			)
		}
	}
	k.next = last + 1
	if onWay := last - min(last, k.through); onWay > protocol.MaxUnacknowledged {
		c.fail(
			"send-window", payload,
			"%d events are on their way: through is %d, and event %d was sent", onWay, k.through,
			last,
		)
	}
	return true
}

// flawText states what is wrong with an event.
var flawText = map[codec.Flaw]string{
	codec.FlawNotObject:    "is not an object",
	codec.FlawEncoding:     "is not UTF-8",
	codec.FlawDepth:        "is nested deeper than 32 levels",
	codec.FlawNumber:       "has a number beyond those that a double can hold",
	codec.FlawType:         "has no type that is a string and not empty",
	codec.FlawTime:         "has no time that is an RFC 3339 timestamp",
	codec.FlawDevice:       "has a device_id that is neither an integer nor null",
	codec.FlawClockTrusted: "has a clock_trusted that is neither a boolean nor null",
	codec.FlawData:         "has no data that is an object",
}

// judgeEvent checks the form of an event.
func (c *Check) judgeEvent(e *codec.Event, seq uint64, payload []byte) {
	switch e.Flaw {
	case "":
		c.pass("event-form", "reserved-types", "event-size")
	case codec.FlawSize:
		c.fail("event-size", payload, "event %d has more than 16 KiB; the service skips it", seq)
	case codec.FlawReserved:
		c.fail(
			"reserved-types", payload,
			"event %d has a type that begins with hub.; the service skips it", seq,
		)
	default:
		c.fail("event-form", payload, "event %d %s; the service skips it", seq, flawText[e.Flaw])
	}
}

// store keeps an event, or compares it with the one that had its number before.
func (c *Check) store(e *codec.Event, seq uint64, payload []byte) {
	sum := sha256.Sum256(e.Payload)
	if former, ok := c.events[seq]; ok {
		if former.sum == sum {
			c.pass("same-content")
		} else {
			c.fail("same-content", payload, "event %d was sent before with another content", seq)
		}
		return
	}
	kept := event{sum: sum}
	var decoded domain.HubEvent
	if e.Payload != nil && json.Unmarshal(e.Payload, &decoded) == nil {
		kept.kind = decoded.Type
		c.judgeData(decoded.Type, decoded.Data, seq, payload)
		if decoded.DeviceID != nil {
			kept.device = *decoded.DeviceID
		}
		if kept.kind == eventDesired || kept.kind == eventObserved {
			kept.data = new(channelData)
			if json.Unmarshal(decoded.Data, kept.data) != nil {
				kept.data = nil
			}
		}
	}
	c.events[seq] = kept
	delete(c.events, seq-min(seq, maxEvents))
	c.highest = max(c.highest, seq)
}

// Types of events that the script waits for.
const (
	eventDesired  = "channel.desired"
	eventObserved = "channel.observed"
)
