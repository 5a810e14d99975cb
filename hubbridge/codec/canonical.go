package codec

import (
	"bytes"
	"strconv"
	"time"

	"hubcloud/domain"
)

// appendTo appends an event as it is stored, the members of domain.HubEvent in their order, and
// notes what else is to be known of it. On a flaw what was appended means nothing.
func (e *Event) appendTo(out []byte, hub domain.HubID, message []byte, p *parts) []byte {
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
	switch device := p.device.of(message); {
	case len(device) == 0, string(device) == "null":
		out = append(out, "null"...)
	default:
		n, ok := integer(device)
		if !ok {
			e.Flaw = FlawDevice
			return out
		}
		out = strconv.AppendInt(out, n, 10)
		if string(typ) == domain.EventDeviceForgotten {
			forgotten := n // of its own, so that other events have nothing on the heap
			e.Forgotten = &forgotten
		}
	}

	out = append(out, `,"time":"`...)
	written, ok := stringOf(message, p.time)
	if !ok {
		e.Flaw = FlawTime
		return out
	}
	if out, ok = appendTime(out, written); !ok {
		e.Flaw = FlawTime
		return out
	}

	out = append(out, `","clock_trusted":`...)
	switch trusted := p.trusted.of(message); string(trusted) {
	case "true", "false", "null":
		out = append(out, trusted...)
	case "":
		out = append(out, "null"...)
	default:
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

// appendString appends text, which is UTF-8, as a JSON string.
func appendString(out, text []byte) []byte {
	const digits = "0123456789abcdef"
	out = append(out, '"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c < 0x20:
			out = append(out, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}

// appendCompact appends checked JSON without the white space between its tokens; everything else
// stays as it is written.
func appendCompact(out, text []byte) []byte {
	inside := false // a string
	kept := 0       // what stands before it has been dealt with
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inside:
			if c == '\\' {
				i++
			} else if c == '"' {
				inside = false
			}
		case c == '"':
			inside = true
		case c == ' ', c == '\n', c == '\t', c == '\r':
			out = append(out, text[kept:i]...)
			kept = i + 1
		}
	}
	return append(out, text[kept:]...)
}

// AppendLinkEvent appends an event of the cloud about a hub's link as it is stored: typ and data, a
// JSON object, are the cloud's own and need no escapes.
func AppendLinkEvent(out []byte, typ string, hub domain.HubID, at time.Time, data []byte) []byte {
	out = append(append(out, `{"type":"`...), typ...)
	out = append(append(out, `","hub_id":"`...), hub...)
	out = append(out, `","device_id":null,"time":"`...)
	out = at.UTC().AppendFormat(out, domain.TimeLayout)
	out = append(out, `","clock_trusted":true,"data":`...)
	return append(append(out, data...), '}')
}
