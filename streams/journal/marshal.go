package journal

import (
	"encoding/binary"
	"fmt"

	"hubcloud/domain"
)

// CommitOverhead is the most bytes that a commit takes beside its records.
const CommitOverhead = 128

// formatVersion is the first byte of a stored commit.
const formatVersion = 1

// Bits of a record's flags beside its kind, which is the lowest two bits and flagState.
const (
	kindMask = 0b11
	// flagOrigin marks a record whose epoch, organization or own log differs from the
	// hub's former event or state in the commit.
	flagOrigin = 1 << 2
	// flagThrough marks a record whose Through differs from the former one's.
	flagThrough    = 1 << 3
	flagConnection = 1 << 4
	// flagState stands for KindState.
	flagState = 1 << 5
	allFlags  = kindMask | flagOrigin | flagThrough | flagConnection | flagState
)

// origin is what the events of a hub in a commit mostly have in common.
type origin struct {
	epoch       domain.EpochID
	org, ownLog string
}

// Marshal returns the commit as it is stored. The commit must have been made by NewCommit or by
// Unmarshal, or have no records. The error is for a commit of more than MaxCommitBytes.
//
// Numbers are unsigned varints if nothing else is stated:
//
//	version      1 byte
//	id           16 bytes
//	sequence
//	term
//	time         8 bytes, big endian: nanoseconds since 1970 of the first record; without records,
//	             of the last record in the journal, 0 for none
//	texts        count; the length of each; then the bytes of all. The first ones are the hubs' ids
//	hubs         count; for each: first sequence, number of events before, distance back to Prev and
//	             to the anchor (0: none), number (1 byte)
//	records      count; for each: index of the hub, flags (1 byte), nanoseconds since the record
//	             before; if flagged: origin (epoch: 4 bytes; indexes of the texts organization and
//	             own log), change of Through (signed varint, modulo 2^64), index of the text
//	             connection; then length and bytes of the payload
func Marshal(c *Commit) ([]byte, error) {
	t := newTexts(c)
	size := CommitOverhead + t.bytes
	for i := range c.Records {
		size += recordOverhead + len(c.Records[i].Payload)
	}
	b := make([]byte, 0, min(size, MaxCommitBytes+MaxPayload))
	b = append(b, formatVersion)
	b = append(b, c.id[:]...)
	b = binary.AppendUvarint(b, c.Seq)
	b = binary.AppendUvarint(b, c.Term)
	begin := c.Time
	if len(c.Records) > 0 {
		begin = c.Records[0].Time
	}
	var nanos int64
	if !begin.IsZero() {
		nanos = begin.UnixNano()
	}
	b = binary.BigEndian.AppendUint64(b, uint64(nanos))
	b = t.appendTo(b)
	b = binary.AppendUvarint(b, uint64(len(c.Links)))
	hubs := make(map[domain.HubID]int, len(c.Links))
	for i, link := range c.Links {
		hubs[link.Hub] = i
		b = binary.AppendUvarint(b, link.First)
		b = binary.AppendUvarint(b, link.eventsBefore)
		b = binary.AppendUvarint(b, distance(c.Seq, link.Prev))
		b = binary.AppendUvarint(b, distance(c.Seq, link.anchor))
		b = append(b, link.number)
	}
	b = binary.AppendUvarint(b, uint64(len(c.Records)))
	former := make([]formerEvent, len(c.Links))
	for i := range c.Records {
		r := &c.Records[i]
		hub := hubs[r.Hub]
		b = binary.AppendUvarint(b, uint64(hub))
		b = appendRecord(b, r, &former[hub], t.index, r.Time.UnixNano()-nanos)
		nanos = r.Time.UnixNano()
		if len(b) > MaxCommitBytes {
			break
		}
	}
	if len(b) > MaxCommitBytes {
		return nil, fmt.Errorf("commit: must be at most %d bytes", MaxCommitBytes)
	}
	return b, nil
}

// distance returns how far a sequence is behind its commit's; 0 for the sequence 0.
func distance(seq, former uint64) uint64 {
	if former == 0 {
		return 0
	}
	return seq - former
}

// formerEvent is what a hub's event or state may leave out because the hub's former one in the
// commit had the same.
type formerEvent struct {
	origin
	through uint64
}

func appendRecord(
	b []byte, r *Record, former *formerEvent, texts map[string]uint64, sinceBefore int64,
) []byte {
	flags := byte(r.Kind)
	if r.Kind == KindState {
		flags = flagState
	}
	own := origin{r.EpochID, r.OrgID, r.OwnLog}
	if r.Kind.hasOrigin() && own != former.origin {
		flags |= flagOrigin
	}
	if r.Kind.hasOrigin() && r.Through != former.through {
		flags |= flagThrough
	}
	if r.Connection != "" {
		flags |= flagConnection
	}
	b = append(b, flags)
	b = binary.AppendUvarint(b, uint64(sinceBefore))
	if flags&flagOrigin != 0 {
		b = append(b, r.EpochID[:]...)
		b = binary.AppendUvarint(b, texts[r.OrgID])
		b = binary.AppendUvarint(b, texts[r.OwnLog])
	}
	if flags&flagThrough != 0 {
		b = binary.AppendVarint(b, int64(r.Through-former.through))
	}
	if flags&flagConnection != 0 {
		b = binary.AppendUvarint(b, texts[r.Connection])
	}
	if r.Kind.hasOrigin() {
		*former = formerEvent{own, r.Through}
	}
	b = binary.AppendUvarint(b, uint64(len(r.Payload)))
	return append(b, r.Payload...)
}

// texts are the different texts of a commit. Records name them by index.
type texts struct {
	all   []string
	index map[string]uint64
	bytes int
}

func newTexts(c *Commit) *texts {
	t := &texts{index: make(map[string]uint64, len(c.Links)+4)}
	for _, link := range c.Links {
		t.add(string(link.Hub))
	}
	if len(c.Records) > 0 {
		t.add("")
	}
	var former Record // mostly has the same texts
	for i := range c.Records {
		r := &c.Records[i]
		if r.OrgID != former.OrgID {
			t.add(r.OrgID)
		}
		if r.OwnLog != former.OwnLog {
			t.add(r.OwnLog)
		}
		if r.Connection != former.Connection {
			t.add(r.Connection)
		}
		former = *r
	}
	return t
}

func (t *texts) add(text string) {
	if _, known := t.index[text]; known {
		return
	}
	t.index[text] = uint64(len(t.all))
	t.all = append(t.all, text)
	t.bytes += len(text)
}

func (t *texts) appendTo(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(t.all)))
	for _, text := range t.all {
		b = binary.AppendUvarint(b, uint64(len(text)))
	}
	for _, text := range t.all {
		b = append(b, text...)
	}
	return b
}
