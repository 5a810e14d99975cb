package hublog

import (
	"encoding/hex"
	"time"
)

// Position is a place in a hub's log, as a cursor has it: behind the message with the sequence Seq,
// which was stored at Stored.
type Position struct {
	// Incarnation is the tag of the log; NoIncarnation when it is not known.
	Incarnation string
	Seq         uint64
	// Stored is rounded down to milliseconds.
	Stored time.Time
}

// NoIncarnation stands for a tag that is not known.
const NoIncarnation = "00000000"

// ParsePosition reads a cursor. The error is invalid_request.
func ParsePosition(text string) (Position, error) {
	c, err := parseCursor(text)
	if err != nil {
		return Position{}, err
	}
	return Position{
		Incarnation: hex.EncodeToString(c.tag[:]),
		Seq:         c.seq,
		Stored:      c.stored().UTC(),
	}, nil
}

// Cursor gives the position as a cursor: that of the event at Seq, if it is an event's.
func (p Position) Cursor() (string, error) {
	tag, err := parseTag(p.Incarnation)
	if err != nil {
		return "", err
	}
	return cursor{tag, p.Seq, p.Stored.UnixMilli()}.String(), nil
}
