package codec

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"hubcloud/domain"
	"hubcloud/hubbridge/protocol"
)

// ErrUnreadable is the error of an events message that must be dropped whole. The errors of Decode
// wrap it.
var ErrUnreadable = errors.New("unreadable events message")

var (
	errTooBig = fmt.Errorf(
		"%w: must have at most %d bytes", ErrUnreadable, protocol.MaxMessageBytes,
	)
	errNoJSON = fmt.Errorf(
		"%w: must be a JSON object with 1 to %d events", ErrUnreadable, protocol.MaxMessageEvents,
	)
	errLog     = fmt.Errorf("%w: log: must be 1 to 64 letters, digits, _ and -", ErrUnreadable)
	errNumbers = fmt.Errorf("%w: seq: must be integers from 1 that rise by one", ErrUnreadable)
)

// Batch is a decoded events message.
type Batch struct {
	// Log is the hub's identity of its own log.
	Log string
	// First is the number of the first event. Each event has the next number.
	First uint64
	// Events are 1 to protocol.MaxMessageEvents events.
	Events []Event
}

// Last returns the number of the last event.
func (b *Batch) Last() uint64 { return b.First + uint64(len(b.Events)) - 1 }

// Event is one event of a message.
type Event struct {
	// Payload is the stored form of the event: domain.HubEvent in one line, without a line feed. It
	// is nil for a malformed event.
	Payload []byte
	// Flaw is the reason why the event is malformed; "" otherwise.
	Flaw Flaw
	// Forgotten is the device of a device.forgotten event; nil for other events.
	Forgotten *int64
}

// Flaw is the reason why an event is malformed and not stored.
type Flaw string

// The flaws.
const (
	FlawNotObject    Flaw = "no_object"
	FlawSize         Flaw = "size"
	FlawEncoding     Flaw = "encoding"
	FlawDepth        Flaw = "depth"
	FlawNumber       Flaw = "number"
	FlawType         Flaw = "type"
	FlawReserved     Flaw = "reserved_type"
	FlawTime         Flaw = "time"
	FlawDevice       Flaw = "device_id"
	FlawClockTrusted Flaw = "clock_trusted"
	FlawData         Flaw = "data"
)

// Flaws returns every flaw.
func Flaws() []Flaw {
	return []Flaw{
		FlawNotObject, FlawSize, FlawEncoding, FlawDepth, FlawNumber, FlawType, FlawReserved,
		FlawTime, FlawDevice, FlawClockTrusted, FlawData,
	}
}

// parts are the extents of an event in its message, and of its members' values.
type parts struct {
	whole                                 span
	seq, typ, device, time, trusted, data span
	// depth is how deep the event is nested, and infinite whether one of its numbers is beyond
	// those that a float64 can hold.
	depth    int
	infinite bool
}

// EventsDecoder decodes events messages. It reuses its memory between messages, so it is not safe
// for concurrent use. The zero EventsDecoder is ready to use.
type EventsDecoder struct {
	scan  scanner
	parts []parts
}

// Decode decodes an events message of a hub. The batch does not refer to message. The error is
// ErrUnreadable for a message that is too big or not JSON, or that has no valid log or no readable,
// consecutive numbers.
func (d *EventsDecoder) Decode(hub domain.HubID, message []byte) (Batch, error) {
	if len(message) > protocol.MaxMessageBytes {
		return Batch{}, errTooBig
	}
	message = WithoutBOM(message)
	logSpan, ok := d.locate(message)
	if !ok {
		return Batch{}, errNoJSON
	}
	log, ok := stringOf(message, logSpan)
	if !ok || !ValidLog(log) {
		return Batch{}, errLog
	}
	first, ok := d.firstNumber(message)
	if !ok {
		return Batch{}, errNumbers
	}
	batch := Batch{Log: string(log), First: first, Events: make([]Event, len(d.parts))}
	// One allocation holds all payloads: a stored event is about as long as the hub's. It loses its
	// number and gains the hub's ID.
	arena := make([]byte, 0, len(message)+len(d.parts)*(len(hub)+32))
	for i := range d.parts {
		from, e := len(arena), &batch.Events[i]
		if arena = e.appendStored(arena, hub, message, &d.parts[i]); e.Flaw != "" {
			arena = arena[:from]
			continue
		}
		e.Payload = arena[from:len(arena):len(arena)]
	}
	return batch, nil
}

// locate finds the parts of each event in d.parts, and the log. ok reports whether message is JSON
// with 1 to protocol.MaxMessageEvents events.
func (d *EventsDecoder) locate(message []byte) (log span, ok bool) {
	s := &d.scan
	s.text, s.pos = message, 0
	d.parts = d.parts[:0]
	s.skipSpace()
	ok = s.eachMember(func(name []byte) (ok bool) {
		switch string(name) {
		case "log":
			log, ok = s.skipValue()
		case "events":
			d.parts = d.parts[:0]
			if s.peek() != '[' {
				_, ok = s.skipValue()
				return ok
			}
			ok = s.eachElement(d.skipEvent)
		default:
			_, ok = s.skipValue()
		}
		return ok
	})
	s.skipSpace()
	return log, ok && s.pos == len(message) && len(d.parts) > 0 && len(d.parts) <= protocol.MaxMessageEvents
}

// skipEvent steps over one element of events and appends its parts.
func (d *EventsDecoder) skipEvent() (ok bool) {
	s := &d.scan
	p := parts{}
	from := s.pos
	s.deepest, s.infinite = 0, false
	if s.peek() != '{' {
		_, ok = s.skipValue()
	} else {
		ok = s.eachMember(func(name []byte) bool {
			value, ok := s.skipValue()
			switch string(name) {
			case "seq":
				p.seq = value
			case "type":
				p.typ = value
			case "device_id":
				p.device = value
			case "time":
				p.time = value
			case "clock_trusted":
				p.trusted = value
			case "data":
				p.data = value
			}
			return ok
		})
	}
	p.whole = span{from, s.pos}
	p.depth, p.infinite = 1+s.deepest, s.infinite
	// Elements beyond the limit are only validated. The first of them is kept, so that locate sees
	// that there are too many.
	if len(d.parts) <= protocol.MaxMessageEvents {
		d.parts = append(d.parts, p)
	}
	return ok
}

// firstNumber returns the number of the first event; ok reports whether the numbers of all events
// are readable and consecutive.
func (d *EventsDecoder) firstNumber(message []byte) (first uint64, ok bool) {
	for i := range d.parts {
		p := &d.parts[i]
		if message[p.whole.from] != '{' {
			continue // it has the number of its position
		}
		n, readable := parseNumber(p.seq.of(message))
		if !readable || n < uint64(i)+1 || ok && n != first+uint64(i) {
			return 0, false
		}
		first, ok = n-uint64(i), true
	}
	return first, ok && first+uint64(len(d.parts))-1 <= protocol.MaxNumber
}

// parseNumber returns a number of the hub protocol: a plain integer from 0 to protocol.MaxNumber.
func parseNumber(text []byte) (uint64, bool) {
	n, ok := parseInteger(text)
	return uint64(n), ok && n >= 0 && n <= protocol.MaxNumber && text[0] != '-'
}

// ValidLog reports whether text is an identity of a log: [A-Za-z0-9_-]{1,64}.
func ValidLog(text []byte) bool {
	for _, c := range text {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return len(text) >= 1 && len(text) <= 64
}

// stringOf returns the text of the string at s; ok is false if s is not a string.
func stringOf(message []byte, s span) (text []byte, ok bool) {
	if s.absent() || message[s.from] != '"' {
		return nil, false
	}
	return unescape(s.of(message)), true
}

// flawOf returns the flaw of an event as a whole; "" for none.
func flawOf(message []byte, p *parts) Flaw {
	whole := p.whole.of(message)
	switch {
	case whole[0] != '{':
		return FlawNotObject
	case len(whole) > protocol.MaxEventBytes:
		return FlawSize
	case !utf8.Valid(whole):
		return FlawEncoding
	case p.depth > protocol.MaxDepth:
		return FlawDepth
	case p.infinite:
		return FlawNumber
	}
	return ""
}
