package journal

import (
	"encoding/binary"
	"errors"
	"fmt"

	"hubcloud/domain"
	"hubcloud/streams/jsapi"
)

const (
	// partBytes is about the most bytes of one part of a snapshot.
	partBytes = 512 << 10
	// snapshotVersion is the first byte of every part.
	snapshotVersion = 3
	// maxParts is the most parts of a snapshot, which are stored as one atomic batch.
	maxParts = jsapi.MaxBatch
	// minTip is the fewest bytes of a hub in a snapshot.
	minTip = 18
)

// errOtherGeneration reports a part of another snapshot than the first part.
var errOtherGeneration = fmt.Errorf("%w: its parts are of different snapshots", ErrUnreadable)

// snapshot is an index as it is stored, in parts.
type snapshot struct {
	// generation is random; all parts of one snapshot have the same.
	generation [8]byte
	parts      int
	position   uint64
	id         commitID
	tips       map[domain.HubID]tip
}

// marshal returns the parts. Each is complete in itself; numbers are unsigned varints if nothing
// else is stated:
//
//	version      1 byte
//	generation   8 bytes
//	parts        count of all parts
//	position
//	id           16 bytes: the id of the commit at position
//	hubs         count; for each: length and bytes of its id; sequence; distances back to the hub's
//	             last event, the cloud's last event and the last state (sequence itself: none);
//	             number of events; distances from position to the last commit, and from there to
//	             its anchor (0: none); number (1 byte); time (8 bytes, big endian: nanoseconds)
func (s *snapshot) marshal() [][]byte {
	var lists [][]byte
	var counts []uint64
	for hub, t := range s.tips {
		last := len(lists) - 1
		if last < 0 || len(lists[last]) > partBytes {
			lists, counts = append(lists, nil), append(counts, 0)
			last++
		}
		lists[last] = t.appendTo(lists[last], hub, s.position)
		counts[last]++
	}
	if len(lists) == 0 {
		lists, counts = [][]byte{nil}, []uint64{0}
	}
	parts := make([][]byte, len(lists))
	for i, list := range lists {
		b := append(make([]byte, 0, len(list)+64), snapshotVersion)
		b = append(b, s.generation[:]...)
		b = binary.AppendUvarint(b, uint64(len(lists)))
		b = binary.AppendUvarint(b, s.position)
		b = append(b, s.id[:]...)
		b = binary.AppendUvarint(b, counts[i])
		parts[i] = append(b, list...)
	}
	return parts
}

func (t *tip) appendTo(b []byte, hub domain.HubID, position uint64) []byte {
	b = binary.AppendUvarint(b, uint64(len(hub)))
	b = append(b, hub...)
	b = binary.AppendUvarint(b, t.seq)
	for _, last := range []uint64{t.hubEvent, t.cloudEvent, t.state} {
		b = binary.AppendUvarint(b, t.seq-last)
	}
	b = binary.AppendUvarint(b, t.events)
	b = binary.AppendUvarint(b, position-t.commit)
	b = binary.AppendUvarint(b, distance(t.commit, t.anchor))
	b = append(b, t.number)
	return binary.BigEndian.AppendUint64(b, uint64(t.nanos))
}

// unmarshalPart adds a part. The first one must come first. The error is ErrUnreadable.
func (s *snapshot) unmarshalPart(part int, data []byte) error {
	d := decoder{rest: data}
	if v := d.byte(); d.err == nil && v != snapshotVersion {
		d.fail("its format has version %d, this program knows %d", v, snapshotVersion)
	}
	head := snapshot{tips: s.tips}
	copy(head.generation[:], d.bytes(len(head.generation)))
	parts := d.uvarint()
	head.position = d.uvarint()
	copy(head.id[:], d.bytes(len(head.id)))
	if d.err == nil && (parts == 0 || parts > maxParts) {
		d.fail("%d parts", parts)
	}
	head.parts = int(parts)
	if part > 0 && d.err == nil && head.generation != s.generation {
		return errOtherGeneration
	}
	if head.tips == nil {
		head.tips = map[domain.HubID]tip{}
	}
	for range d.count(minTip) {
		d.tip(head.tips, head.position)
	}
	if d.err == nil && len(d.rest) > 0 {
		d.fail("bytes behind its end")
	}
	if d.err != nil {
		return fmt.Errorf("snapshot: part %d: %w: %w", part, ErrUnreadable, d.err)
	}
	*s = head
	return nil
}

// errTip reports numbers of a hub that cannot be.
var errTip = errors.New("impossible numbers of a hub")

// tip reads a hub's tip into tips.
func (d *decoder) tip(tips map[domain.HubID]tip, position uint64) {
	hub := domain.HubID(string(d.bytes(d.length())))
	t := tip{seq: d.uvarint()}
	hubEvent, cloudEvent, state := d.uvarint(), d.uvarint(), d.uvarint()
	t.events = d.uvarint()
	commit, anchor := d.uvarint(), d.uvarint()
	t.number = d.byte()
	t.nanos = d.nanos()
	if d.err != nil {
		return
	}
	t.commit = position - commit
	if max(hubEvent, cloudEvent, state, t.events) > t.seq || commit >= position || anchor >= t.commit {
		d.err, d.rest = errTip, nil
		return
	}
	t.hubEvent, t.cloudEvent, t.state = t.seq-hubEvent, t.seq-cloudEvent, t.seq-state
	if anchor > 0 {
		t.anchor = t.commit - anchor
	}
	tips[hub] = t
}
