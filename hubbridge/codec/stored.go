package codec

import (
	"bytes"
	"strconv"
	"time"

	"hubcloud/domain"
)

// appendStored appends an event in its stored form, the members of domain.HubEvent in their order,
// and sets e.Forgotten. For a malformed event it sets e.Flaw; the bytes appended so far are then to
// be dropped.
func (e *Event) appendStored(out []byte, hub domain.HubID, message []byte, p *parts) []byte {
	if e.Flaw = flawOf(message, p); e.Flaw != "" {
		return out
	}
	typ, ok := stringOf(message, p.typ)
	if !ok || len(typ) == 0 {
		e.Flaw = FlawType
		return out
	}
	if bytes.HasPrefix(typ, []byte("hub.")) {
		e.Flaw = FlawReserved
		return out
	}
	out = append(out, `{"type":`...)
	out = appendString(out, typ)
	out = append(out, `,"hub_id":"`...)
	out = append(out, hub...)

	out = append(out, `","device_id":`...)
	if out, ok = e.appendDevice(out, typ, p.device.of(message)); !ok {
		e.Flaw = FlawDevice
		return out
	}
	out = append(out, `,"time":"`...)
	written, ok := stringOf(message, p.time)
	if ok {
		out, ok = appendTime(out, written)
	}
	if !ok {
		e.Flaw = FlawTime
		return out
	}
	out = append(out, `","clock_trusted":`...)
	if out, ok = appendTrusted(out, p.trusted.of(message)); !ok {
		e.Flaw = FlawClockTrusted
		return out
	}
	out = append(out, `,"data":`...)
	data := p.data.of(message)
	if len(data) == 0 || data[0] != '{' {
		e.Flaw = FlawData
		return out
	}
	return append(appendCompact(out, data), '}')
}

// appendDevice appends a device_id, null if it is absent, and sets e.Forgotten for a
// device.forgotten event. ok is false if device is neither null nor an integer.
func (e *Event) appendDevice(out, typ, device []byte) (appended []byte, ok bool) {
	if len(device) == 0 || string(device) == "null" {
		return append(out, "null"...), true
	}
	n, ok := parseInteger(device)
	if !ok {
		return out, false
	}
	if string(typ) == domain.EventDeviceForgotten {
		forgotten := n // a copy, so that n stays off the heap for other events
		e.Forgotten = &forgotten
	}
	return strconv.AppendInt(out, n, 10), true
}

// appendTrusted appends a clock_trusted, null if it is absent. ok is false for another value than
// true, false and null.
func appendTrusted(out, trusted []byte) (appended []byte, ok bool) {
	switch string(trusted) {
	case "true", "false", "null":
		return append(out, trusted...), true
	case "":
		return append(out, "null"...), true
	}
	return out, false
}

// appendString appends text, which must be UTF-8, as a JSON string, with U+FFFD for U+0000.
func appendString(out, text []byte) []byte {
	const digits = "0123456789abcdef"
	out = append(out, '"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c == 0:
			out = append(out, `\ufffd`...)
		case c < 0x20:
			out = append(out, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}

// appendCompact appends valid JSON without the white space between its tokens, and with U+FFFD for
// each escape of half a surrogate pair, which many readers of JSON reject, and of U+0000, which the
// JSON of PostgreSQL cannot hold. All else keeps its spelling.
func appendCompact(out, text []byte) []byte {
	inString := false
	copied := 0 // text before this index is in out, but for the white space
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString:
			if c == '\\' {
				size, unreadable := measureEscape(text[i:])
				if unreadable {
					out = append(append(out, text[copied:i]...), `\ufffd`...)
					copied = i + size
				}
				i += size - 1
			} else if c == '"' {
				inString = false
			}
		case c == '"':
			inString = true
		case c == ' ', c == '\n', c == '\t', c == '\r':
			out = append(out, text[copied:i]...)
			copied = i + 1
		}
	}
	return append(out, text[copied:]...)
}

// measureEscape returns the length of the escape that valid JSON text begins with, two escapes for
// a pair of surrogates; unreadable reports whether the escape is half of such a pair, without the
// other, or U+0000.
func measureEscape(text []byte) (size int, unreadable bool) {
	switch kind := surrogateKind(text); {
	case text[1] != 'u':
		return 2, false
	case kind == highSurrogate && surrogateKind(text[6:]) == lowSurrogate:
		return 12, false
	default:
		return 6, kind != 0 || string(text[2:6]) == "0000"
	}
}

// The first two of a surrogate's four hexadecimal digits, without the lowest two bits.
const (
	highSurrogate = 0xd8
	lowSurrogate  = 0xdc
)

// surrogateKind returns highSurrogate or lowSurrogate if valid JSON text begins with the escape of
// one, and 0 otherwise.
func surrogateKind(text []byte) uint64 {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(text[2:4]), 16, 8)
	if kind := n &^ 3; err == nil && (kind == highSurrogate || kind == lowSurrogate) {
		return kind
	}
	return 0
}

// AppendCloudEvent appends the stored form of an event that the cloud writes about a hub's
// connection. typ must need no escapes, and data must be a JSON object.
func AppendCloudEvent(out []byte, typ string, hub domain.HubID, at time.Time, data []byte) []byte {
	out = append(append(out, `{"type":"`...), typ...)
	out = append(append(out, `","hub_id":"`...), hub...)
	out = append(out, `","device_id":null,"time":"`...)
	out = at.UTC().AppendFormat(out, domain.TimeLayout)
	out = append(out, `","clock_trusted":true,"data":`...)
	return append(append(out, data...), '}')
}
