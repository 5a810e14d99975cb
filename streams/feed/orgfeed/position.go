package orgfeed

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"
	"time"

	"hubcloud/domain"
)

// Position is a place in an organization's feed.
type Position struct {
	// Complete is a time, in milliseconds since 1970, such that every event after the position was
	// stored then or later.
	Complete int64
	// Times has one time for each group of shards, in nanoseconds since 1970: the position is after
	// the events of the group up to that time.
	Times []int64
}

const (
	// positionVersion differs from the version of the cursors of hub logs.
	positionVersion = 2
	// maxGroups is the most groups that a position may have.
	maxGroups = 64
	// maxPositionText is the longest text of a position.
	maxPositionText = 1000
	// positionHead is the length of a position's text before the times, and positionSum of the
	// checksum.
	positionHead = 1 + 6 + 1 + 8
	positionSum  = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// String returns the position's text: base64url of version (1 byte), Complete (6), number of groups
// (1), latest time (8), for each group by how much its time is earlier (varint), and the CRC-32C of
// all before it (4). Each position has exactly one text.
func (p Position) String() string {
	return string(p.appendTo(make([]byte, 0, base64.RawURLEncoding.EncodedLen(p.maxBytes()))))
}

func (p Position) maxBytes() int {
	return positionHead + len(p.Times)*binary.MaxVarintLen64 + positionSum
}

// appendTo appends the position's text to dst.
func (p Position) appendTo(dst []byte) []byte {
	var array [256]byte
	raw := array[:0]
	latest := slices.Max(p.Times)
	raw = append(raw, positionVersion)
	raw = append(raw, byte(p.Complete>>40), byte(p.Complete>>32))
	raw = binary.BigEndian.AppendUint32(raw, uint32(p.Complete))
	raw = append(raw, byte(len(p.Times)))
	raw = binary.BigEndian.AppendUint64(raw, uint64(latest))
	for _, t := range p.Times {
		raw = binary.AppendUvarint(raw, uint64(latest-t))
	}
	raw = binary.BigEndian.AppendUint32(raw, crc32.Checksum(raw, castagnoli))
	return base64.RawURLEncoding.AppendEncode(dst, raw)
}

// ParsePosition reads a position's text. groups is the number of groups of the installation. The
// error is invalid_request.
func ParsePosition(text string, groups int) (p Position, err error) {
	if len(text) > maxPositionText {
		return p, errBadPosition()
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) < positionHead+positionSum || raw[0] != positionVersion ||
		int(raw[7]) != groups {
		return p, errBadPosition()
	}
	body := raw[:len(raw)-positionSum]
	if binary.BigEndian.Uint32(raw[len(body):]) != crc32.Checksum(body, castagnoli) {
		return p, errBadPosition()
	}
	p.Complete = int64(raw[1])<<40 | int64(raw[2])<<32 | int64(binary.BigEndian.Uint32(raw[3:]))
	latest := binary.BigEndian.Uint64(raw[8:])
	p.Times = make([]int64, groups)
	rest := body[positionHead:]
	for g := range p.Times {
		earlier, n := binary.Uvarint(rest)
		if n <= 0 || latest > math.MaxInt64 || earlier > latest {
			return Position{}, errBadPosition()
		}
		p.Times[g], rest = int64(latest-earlier), rest[n:]
	}
	if p.String() != text { // a number in more bytes than it needs, or bytes that are left
		return Position{}, errBadPosition()
	}
	return p, nil
}

// completeAt returns Complete as a time.
func (p Position) completeAt() time.Time { return time.UnixMilli(p.Complete) }

// reach moves the position to include what other times include.
func (p Position) reach(times []int64) {
	for g, t := range times {
		p.Times[g] = max(p.Times[g], t)
	}
}

// includes reports whether the position is after the events up to all those times.
func (p Position) includes(times []int64) bool {
	for g, t := range times {
		if t > p.Times[g] {
			return false
		}
	}
	return true
}

func errBadPosition() error {
	return domain.Errorf(
		domain.CodeInvalidRequest,
		"after, or Last-Event-ID: must be the id of a message or a next_cursor of this feed, "+
			"unchanged",
	)
}

func errExpired() error {
	return domain.Errorf(
		domain.CodeCursorExpired,
		"after, or Last-Event-ID: events after this position may have expired: read GET "+
			"/v1/state, and continue from the header Event-Cursor of its first page",
	)
}
