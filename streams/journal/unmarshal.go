package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"hubcloud/domain"
)

// ErrUnreadable reports that a message of a journal is not a commit that this program can read: a
// newer program wrote it, or another one.
var ErrUnreadable = errors.New("unreadable commit")

// Unmarshal reads a commit that Marshal wrote. The payloads share data's memory. The memory that it
// allocates is in proportion to the length of data. The error is ErrUnreadable.
func Unmarshal(data []byte) (Commit, error) {
	d := decoder{rest: data}
	c := d.commit()
	if d.err == nil && len(d.rest) > 0 {
		d.fail("bytes behind its end")
	}
	if d.err != nil {
		return Commit{}, fmt.Errorf("%w: %w", ErrUnreadable, d.err)
	}
	return c, nil
}

// The fewest bytes that an entry of a list takes in a commit. They bound the memory that is
// allocated for a list before its entries are read.
const (
	minText   = 1
	minLink   = 5
	minRecord = 4
)

// decoder reads values one after the other. After the first error it returns zero values.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
		d.rest = nil
	}
}

func (d *decoder) commit() Commit {
	var c Commit
	if v := d.byte(); d.err == nil && v != formatVersion {
		d.fail("its format has version %d, this program knows %d", v, formatVersion)
	}
	copy(c.id[:], d.bytes(len(c.id)))
	c.Seq = d.uvarint()
	c.Term = d.uvarint()
	nanos := d.nanos()
	texts := d.texts()
	c.Links = d.links(c.Seq, texts)
	c.Records = d.records(c.Links, texts, &nanos)
	if nanos != 0 {
		c.Time = utc(nanos)
	}
	for _, link := range c.Links {
		if link.Last < link.First {
			d.fail("no record of hub %q", link.Hub)
		}
	}
	return c
}

func (d *decoder) texts() []string {
	all := make([]string, d.count(minText))
	lengths := make([]int, len(all))
	total := 0
	for i := range lengths {
		lengths[i] = d.length()
		if total += lengths[i]; total > len(d.rest) {
			d.fail("texts of %d bytes in %d", total, len(d.rest))
			return nil
		}
	}
	shared := string(d.bytes(total))
	if d.err != nil {
		return nil
	}
	for i, n := range lengths {
		all[i], shared = shared[:n], shared[n:]
	}
	return all
}

func (d *decoder) links(seq uint64, texts []string) []Link {
	n := d.count(minLink)
	if n > len(texts) {
		d.fail("%d hubs with %d texts", n, len(texts))
	}
	if n == 0 || d.err != nil {
		return nil
	}
	links := make([]Link, n)
	hubs := make(map[domain.HubID]struct{}, n)
	for i := range links {
		link := &links[i]
		link.Hub = domain.HubID(texts[i])
		hubs[link.Hub] = struct{}{}
		link.First = d.uvarint()
		if link.First == 0 && d.err == nil {
			d.fail("hub %q begins with sequence 0", link.Hub)
		}
		link.Last = link.First - 1
		events := d.uvarint()
		if events > link.Last && d.err == nil {
			d.fail("hub %q has %d events before sequence %d", link.Hub, events, link.First)
		}
		link.countFrom(events)
		link.Prev, link.anchor = d.former(seq), d.former(seq)
		link.number = d.byte()
	}
	if len(hubs) < n {
		d.fail("a hub is listed twice")
	}
	return links
}

// former reads the distance from a commit back to a former one, and returns its sequence.
func (d *decoder) former(seq uint64) uint64 {
	distance := d.uvarint()
	if distance == 0 {
		return 0
	}
	if distance >= seq {
		d.fail("a commit %d before %d", distance, seq)
		return 0
	}
	return seq - distance
}

// records reads the records, whose first one has the time nanos, and leaves the time of the last
// one there. It completes the links.
func (d *decoder) records(links []Link, texts []string, nanos *int64) []Record {
	n := d.count(minRecord)
	if n > MaxRecords {
		d.fail("%d records", n)
	}
	if n == 0 || d.err != nil {
		return nil
	}
	records := make([]Record, n)
	former := make([]formerEvent, len(links))
	for i := range records {
		hub := d.uvarint()
		if hub >= uint64(len(links)) {
			d.fail("record of hub %d of %d", hub, len(links))
			return nil
		}
		link := &links[hub]
		r := &records[i]
		r.Hub, r.Seq = link.Hub, link.Last+1
		d.record(r, &former[hub], texts, i == 0, nanos)
		if d.err == nil && r.Seq == 0 {
			d.fail("sequence of hub %q too high", link.Hub)
		}
		if d.err != nil {
			return nil
		}
		_ = link.add(r) // in order, as the sequence was counted here
	}
	return records
}

// record reads a record up to its end. nanos is the time of the record before.
func (d *decoder) record(
	r *Record, former *formerEvent, texts []string, first bool, nanos *int64,
) {
	flags := d.byte()
	r.Kind = Kind(flags & kindMask)
	if flags&(flagState|kindMask) == flagState {
		r.Kind = KindState
	} else if flags&flagState != 0 {
		d.fail("flags %#x of a record", flags)
	}
	if d.err == nil && (r.Kind == 0 || flags&^byte(allFlags) != 0) {
		d.fail("flags %#x of a record", flags)
	}
	since := d.uvarint()
	if since > math.MaxInt64-uint64(*nanos) || (since == 0) != first || *nanos == 0 {
		d.fail("time of a record %d ns after %d", since, *nanos)
		return
	}
	*nanos += int64(since)
	r.Time = utc(*nanos)
	if flags&flagOrigin != 0 {
		copy(former.epoch[:], d.bytes(len(former.epoch)))
		former.org, former.ownLog = d.text(texts), d.text(texts)
	}
	if flags&flagThrough != 0 {
		former.through += uint64(d.varint())
	}
	if flags&flagConnection != 0 {
		r.Connection = d.text(texts)
	}
	if r.Kind.hasOrigin() {
		r.EpochID, r.OrgID, r.OwnLog = former.epoch, former.org, former.ownLog
		r.Through = former.through
	} else if flags&^byte(kindMask) != 0 {
		d.fail("flags %#x of a command", flags)
	}
	r.Payload = d.bytes(d.length())
}

func utc(nanos int64) time.Time { return time.Unix(0, nanos).UTC() }

// nanos reads a time from 1970 on; 0 stands for none.
func (d *decoder) nanos() int64 {
	b := d.bytes(8)
	if len(b) < 8 {
		return 0
	}
	n := binary.BigEndian.Uint64(b)
	if n > math.MaxInt64 {
		d.fail("time %d", n)
		return 0
	}
	return int64(n)
}

func (d *decoder) text(texts []string) string {
	i := d.uvarint()
	if i >= uint64(len(texts)) {
		d.fail("text %d of %d", i, len(texts))
		return ""
	}
	return texts[i]
}

// count reads the length of a list whose entries take at least the given bytes each.
func (d *decoder) count(entry int) int {
	n := d.uvarint()
	if n > uint64(len(d.rest)/entry) {
		d.fail("%d entries in %d bytes", n, len(d.rest))
		return 0
	}
	return int(n)
}

// length reads a number of bytes that must follow.
func (d *decoder) length() int { return d.count(1) }

func (d *decoder) byte() byte {
	if b := d.bytes(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

// bytes returns the next n bytes, with no capacity behind them.
func (d *decoder) bytes(n int) []byte {
	if n > len(d.rest) {
		d.fail("ends early")
		return nil
	}
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.fail("ends in a number")
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.fail("ends in a number")
		return 0
	}
	d.rest = d.rest[n:]
	return v
}
