package feed

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

// payloadStart begins every stored event: domain.HubEvent as JSON has the type first.
const payloadStart = `{"type":"`

// checkPayload returns an error for a payload that does not fit into a frame.
func checkPayload(payload []byte) error {
	if !bytes.HasPrefix(payload, []byte(payloadStart)) || payload[len(payload)-1] != '}' {
		return errors.New("payload: must be a JSON object that begins with its type")
	}
	if bytes.ContainsAny(payload, "\r\n") {
		return errors.New("payload: must be one line")
	}
	if !utf8.Valid(payload) {
		return errors.New("payload: must be UTF-8")
	}
	return nil
}

// payloadType returns the type of a stored event.
func payloadType(payload []byte) (string, error) {
	rest, ok := bytes.CutPrefix(payload, []byte(payloadStart))
	if !ok {
		return "", errors.New("stored event: does not begin with its type")
	}
	for i := 0; i < len(rest); i++ {
		switch rest[i] {
		case '"':
			return string(rest[:i]), nil
		case '\\':
			// An escaped type is rare: decode the whole payload.
			var e struct {
				Type string `json:"type"`
			}
			if err := json.Unmarshal(payload, &e); err != nil {
				return "", fmt.Errorf("stored event: %w", err)
			}
			return e.Type, nil
		}
	}
	return "", errors.New("stored event: its type has no end")
}

// sseField replaces the characters that would end a field of an event stream, or make clients
// ignore it, by spaces. Only the frame's event field needs it: the envelope escapes the type.
var sseField = strings.NewReplacer("\r", " ", "\n", " ", "\x00", " ")

// frameOverhead is the length of a frame without type and payload. The envelope replaces the
// payload's first brace.
const frameOverhead = len("id: \nevent: \ndata: \n\n") + len(`{"cursor":"",`) - len(`{`) +
	2*cursorText

// encode returns a stored event in the form that readers get. It copies the payload.
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
	frame = append(frame, sseField.Replace(typ)...)
	frame = append(frame, "\ndata: "...)
	envelope := len(frame)
	frame = append(frame, `{"cursor":"`...)
	frame = append(frame, text...)
	frame = append(frame, `",`...)
	frame = append(frame, payload[1:]...)
	end := len(frame)
	frame = append(frame, "\n\n"...)
	return domain.EncodedEvent{
		Seq:         seq,
		StoredNanos: stored.UnixNano(),
		Frame:       frame,
		Envelope:    frame[envelope:end:end],
		// A copy, so that a cursor does not keep the frame in memory.
		Cursor: string(text),
	}, nil
}

// eventOverhead is about the memory of an encoded event beside its frame: the structure, the
// cursor's text and rounding.
const eventOverhead = 160

// eventBytes returns about how much memory an encoded event takes.
func eventBytes(e domain.EncodedEvent) int64 { return int64(cap(e.Frame)) + eventOverhead }
