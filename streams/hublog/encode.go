package hublog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"hubcloud/domain"
)

// payloadStart is what every stored event begins with: domain.HubEvent as JSON, type first.
const payloadStart = `{"type":"`

// checkPayload refuses what could not be put into a frame.
func checkPayload(payload []byte) error {
	if !bytes.HasPrefix(payload, []byte(payloadStart)) || payload[len(payload)-1] != '}' {
		return errors.New("payload is no hub event with the type first")
	}
	if bytes.ContainsAny(payload, "\r\n") {
		return errors.New("payload is not on one line")
	}
	if !utf8.Valid(payload) {
		return errors.New("payload is not UTF-8")
	}
	return nil
}

// payloadType gives the event type of a stored event.
func payloadType(payload []byte) (string, error) {
	rest, ok := bytes.CutPrefix(payload, []byte(payloadStart))
	if !ok {
		return "", errors.New("stored event does not begin with its type")
	}
	for i := 0; i < len(rest); i++ {
		switch rest[i] {
		case '"':
			return string(rest[:i]), nil
		case '\\':
			// Rare, so the whole of it may be decoded.
			var e struct {
				Type string `json:"type"`
			}
			if err := json.Unmarshal(payload, &e); err != nil {
				return "", fmt.Errorf("stored event: %w", err)
			}
			return e.Type, nil
		}
	}
	return "", errors.New("stored event has no end to its type")
}

// fieldText makes an event type fit for a line of an event stream: what would end the line, or is
// ignored in it, becomes a space. The envelope keeps the type as it is.
var fieldText = strings.NewReplacer("\r", " ", "\n", " ", "\x00", " ")

// frameOverhead is what a frame has beside type and payload. The payload leaves its first brace to
// the envelope.
const frameOverhead = len("id: ") + cursorText + len("\nevent: ") + len("\ndata: ") + len(`{"cursor":"`) + cursorText + len(`",`) - len(`{`) + len("\n\n")

// encode makes the event that readers get of a stored one. The payload is copied.
func encode(
	epoch domain.EpochID, seq uint64, stored time.Time, payload []byte,
) (domain.EncodedEvent, error) {
	typ, err := payloadType(payload)
	if err != nil {
		return domain.EncodedEvent{}, fmt.Errorf("sequence %d: %w", seq, err)
	}
	frame := make([]byte, 0, frameOverhead+len(typ)+len(payload))
	frame = append(frame, "id: "...)
	frame = cursor{epoch, seq, stored.UnixMilli()}.appendTo(frame)
	text := frame[len("id: "):]
	frame = append(frame, "\nevent: "...)
	frame = append(frame, fieldText.Replace(typ)...)
	frame = append(frame, "\ndata: "...)
	envelope := len(frame)
	frame = append(frame, `{"cursor":"`...)
	frame = append(frame, text...)
	frame = append(frame, `",`...)
	frame = append(frame, payload[1:]...)
	end := len(frame)
	frame = append(frame, "\n\n"...)
	return domain.EncodedEvent{
		Seq:      seq,
		Frame:    frame,
		Envelope: frame[envelope:end:end],
		// A copy: who keeps a cursor should not keep the frame.
		Cursor: string(text),
	}, nil
}

// eventOverhead is about what an encoded event takes in memory beside its frame: the structure, the
// cursor's text, and what the runtime rounds up.
const eventOverhead = 160

func eventBytes(e domain.EncodedEvent) int64 { return int64(cap(e.Frame)) + eventOverhead }
