package feed

import (
	"time"

	"hubcloud/domain"
)

// DecodedCursor is a place in a hub's log, the decoded form of a cursor: after the message with the
// sequence Seq, which was stored at Stored.
type DecodedCursor struct {
	// EpochID is the id of the log's epoch; zero when it is not known.
	EpochID domain.EpochID
	Seq     uint64
	// Stored is rounded down to milliseconds.
	Stored time.Time
}

// DecodeCursor decodes a cursor. The error is invalid_request.
func DecodeCursor(text string) (DecodedCursor, error) {
	c, err := parseCursor(text)
	if err != nil {
		return DecodedCursor{}, err
	}
	return DecodedCursor{EpochID: c.epoch, Seq: c.seq, Stored: c.stored().UTC()}, nil
}

// Cursor returns the position's cursor: the cursor of the event at Seq, if there is one.
func (p DecodedCursor) Cursor() string {
	return cursor{p.EpochID, p.Seq, p.Stored.UnixMilli()}.String()
}
