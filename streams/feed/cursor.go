package feed

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"time"

	"hubcloud/domain"
)

// cursor is a place in a hub's log. Every message with a greater sequence was stored at or after
// ms.
//
// As text it is 28 characters of base64url: version (1 byte), epoch (4), sequence (6), milliseconds
// since 1970 (6), and the CRC-32C of all before it (4). 21 bytes leave no spare bits in 28
// characters, so each cursor has exactly one text.
type cursor struct {
	epoch domain.EpochID
	seq   uint64 // below 2^48
	ms    int64  // from 0 to 2^48 - 1
}

const (
	cursorVersion = 1
	cursorBytes   = 1 + 4 + 6 + 6 + 4
	cursorText    = cursorBytes / 3 * 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendTo appends the cursor's text to dst.
func (c cursor) appendTo(dst []byte) []byte {
	var raw [cursorBytes]byte
	raw[0] = cursorVersion
	copy(raw[1:5], c.epoch[:])
	putUint48(raw[5:11], c.seq)
	putUint48(raw[11:17], uint64(c.ms))
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[:17], castagnoli))
	return base64.RawURLEncoding.AppendEncode(dst, raw[:])
}

// cursorAt returns the cursor at a sequence of the log with that epoch.
func cursorAt(epoch domain.Epoch, seq uint64, ms int64) cursor {
	return cursor{epoch.At(seq), seq, ms}
}

func (c cursor) String() string { return string(c.appendTo(make([]byte, 0, cursorText))) }

// stored returns when the cursor's event was stored or, for a position, when the log ended there.
func (c cursor) stored() time.Time { return time.UnixMilli(c.ms) }

// parseCursor reads a cursor's text. The error is invalid_request.
func parseCursor(s string) (c cursor, err error) {
	var raw [cursorBytes]byte
	if len(s) != cursorText {
		return c, errBadCursor()
	}
	if n, err := base64.RawURLEncoding.Strict().Decode(raw[:], []byte(s)); err != nil ||
		n != cursorBytes {
		return c, errBadCursor()
	}
	if raw[0] != cursorVersion ||
		binary.BigEndian.Uint32(raw[17:]) != crc32.Checksum(raw[:17], castagnoli) {
		return c, errBadCursor()
	}
	copy(c.epoch[:], raw[1:5])
	c.seq = uint48(raw[5:11])
	c.ms = int64(uint48(raw[11:17]))
	return c, nil
}

func putUint48(b []byte, v uint64) {
	binary.BigEndian.PutUint16(b, uint16(v>>32))
	binary.BigEndian.PutUint32(b[2:], uint32(v))
}

func uint48(b []byte) uint64 {
	return uint64(binary.BigEndian.Uint16(b))<<32 | uint64(binary.BigEndian.Uint32(b[2:]))
}

func errBadCursor() error {
	return domain.Errorf(
		domain.CodeInvalidRequest,
		"after, or Last-Event-ID: must be the cursor of an event or a next_cursor, unchanged",
	)
}

func errExpired() error {
	return domain.Errorf(
		domain.CodeCursorExpired,
		"after, or Last-Event-ID: events after this cursor may have expired, or the hub was "+
			"reset: read the hub's devices, then its events without a cursor",
	)
}
