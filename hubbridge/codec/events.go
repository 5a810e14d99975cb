package codec

import (
	"errors"
	"unicode/utf8"

	"hubcloud/domain"
	"hubcloud/hubbridge/protocol"
)

// ErrUnreadable says that an events message is to be dropped whole: it is too big, no JSON, has no
// log, or no readable consecutive numbers.
var ErrUnreadable = errors.New("unreadable events message")

// Batch is an events message that could be read.
type Batch struct {
	// Log is the identity of the hub's log.
	Log string
	// First is the number of the first event; the others follow by one.
	First uint64
	// Events has 1 to protocol.MaxMessageEvents events.
	Events []Event
}

// Last is the number of the last event.
func (b *Batch) Last() uint64 { return b.First + uint64(len(b.Events)) - 1 }

// Event is one event of a message.
type Event struct {
	// Payload is the event as it is stored: domain.HubEvent on one line, without the new line. Nil
	// when the event is malformed.
	Payload []byte
	// Flaw says what is wrong with a malformed event; empty otherwise.
	Flaw Flaw
	// Forgotten is the device that the hub has forgotten, if that is what the event says.
	Forgotten *int64
}

// Flaw is why an event is not stored.
type Flaw string

// The flaws.
const (
	FlawNoObject     Flaw = "no_object"
	FlawSize         Flaw = "size"
	FlawEncoding     Flaw = "encoding"
	FlawType         Flaw = "type"
	FlawReserved     Flaw = "reserved_type"
	FlawTime         Flaw = "time"
	FlawDevice       Flaw = "device_id"
	FlawClockTrusted Flaw = "clock_trusted"
	FlawData         Flaw = "data"
)

// Flaws gives every flaw.
func Flaws() []Flaw {
	return []Flaw{
		FlawNoObject,
		FlawSize,
		FlawEncoding,
		FlawType,
		FlawReserved,
		FlawTime,
		FlawDevice,
		FlawClockTrusted,
		FlawData,
	}
}

// parts is where an event of a message stands, and where its members' values do.
type parts struct {
	whole                                 span
	seq, typ, device, time, trusted, data span
}

// Reader reads events messages; it keeps its working memory from one to the next. Not for
// concurrent use. The zero value is ready.
type Reader struct {
	scan  scanner
	parts []parts
}

// Events reads an events message of a hub. The error is ErrUnreadable; then Batch.Log is the
// message's log if at least that could be read. The batch does not refer to message.
func (r *Reader) Events(hub domain.HubID, message []byte) (Batch, error) {
	if len(message) > protocol.MaxMessageBytes {
		return Batch{}, ErrUnreadable
	}
	log, ok := r.locate(message)
	if !ok {
		return Batch{}, ErrUnreadable
	}
	batch := Batch{}
	if text, ok := stringOf(message, log); ok && ValidLog(text) {
		batch.Log = string(text)
	}
	first, ok := r.first(message)
	if batch.Log == "" || !ok {
		return batch, ErrUnreadable
	}
	batch.First = first
	batch.Events = make([]Event, len(r.parts))
	// What is stored is about as long as what came: the number goes, the hub's id comes. One
	// allocation holds them all.
	arena := make([]byte, 0, len(message)+len(r.parts)*(len(hub)+32))
	for i := range r.parts {
		from, e := len(arena), &batch.Events[i]
		if arena = e.appendTo(arena, hub, message, &r.parts[i]); e.Flaw != "" {
			arena = arena[:from]
			continue
		}
		e.Payload = arena[from:len(arena):len(arena)]
	}
	return batch, nil
}

// locate finds the parts of the message and checks that the whole of it is JSON, with 1 to
// protocol.MaxMessageEvents events.
func (r *Reader) locate(message []byte) (log span, ok bool) {
	s := &r.scan
	s.text, s.pos = message, 0
	r.parts = r.parts[:0]
	s.space()
	ok = s.object(func(name []byte) (ok bool) {
		switch string(name) {
		case "log":
			log, ok = s.value()
		case "events":
			r.parts = r.parts[:0]
			if s.peek() != '[' {
				_, ok = s.value()
				return ok
			}
			ok = s.array(r.event)
		default:
			_, ok = s.value()
		}
		return ok
	})
	s.space()
	return log, ok && s.pos == len(message) && len(r.parts) > 0 &&
		len(r.parts) <= protocol.MaxMessageEvents
}

// event finds the parts of the element at which the scanner stands.
func (r *Reader) event() (ok bool) {
	s := &r.scan
	p := parts{}
	from := s.pos
	if s.peek() != '{' {
		_, ok = s.value()
	} else {
		ok = s.object(func(name []byte) bool {
			value, ok := s.value()
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
	// One beyond the limit is kept, so that the excess shows; the rest is only checked.
	if len(r.parts) <= protocol.MaxMessageEvents {
		r.parts = append(r.parts, p)
	}
	return ok
}

// first gives the number of the first event, if the numbers are readable and consecutive.
func (r *Reader) first(message []byte) (first uint64, ok bool) {
	for i := range r.parts {
		p := &r.parts[i]
		if message[p.whole.from] != '{' {
			continue // it has the number that its place gives it
		}
		n, readable := number(p.seq.of(message))
		if !readable || n < uint64(i)+1 || ok && n != first+uint64(i) {
			return 0, false
		}
		first, ok = n-uint64(i), true
	}
	return first, ok && first+uint64(len(r.parts))-1 <= protocol.MaxNumber
}

// number reads a number of the hub link: a plain integer from 0 to protocol.MaxNumber.
func number(text []byte) (uint64, bool) {
	n, ok := integer(text)
	return uint64(n), ok && n >= 0 && n <= protocol.MaxNumber && text[0] != '-'
}

// ValidLog says whether text is a log's identity: [A-Za-z0-9_-]{1,64}.
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

// stringOf gives what the string at s stands for.
func stringOf(message []byte, s span) ([]byte, bool) {
	if s.absent() || message[s.from] != '"' {
		return nil, false
	}
	return unescape(s.of(message)), true
}

// flawOf looks at an event as a whole.
func flawOf(message []byte, p *parts) Flaw {
	whole := p.whole.of(message)
	switch {
	case whole[0] != '{':
		return FlawNoObject
	case len(whole) > protocol.MaxEventBytes:
		return FlawSize
	case !utf8.Valid(whole):
		return FlawEncoding
	}
	return ""
}
