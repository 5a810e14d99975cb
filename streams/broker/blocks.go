package broker

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/minio/highwayhash"
)

// The format of nats-server 2.15 for messages (in streams/<stream>/msgs/<n>.blk): records of
//
//	length of the record, sequence, time (nanoseconds since 1970), length of the subject
//	subject; with flagHeader the length of the header and the header; the message
//	a HighwayHash-64 of all but the lengths
//
// with little-endian numbers of 4, 8, 8, 2 and 4 bytes.
const (
	blockSuffix  = ".blk"
	stateFile    = "index.db"
	recordHeader = 22
	hashSize     = 8
	emptyRecord  = recordHeader + hashSize
	maxRecord    = 32 << 20
	// flagHeader is a bit of the length. flagErased and flagTombstone are bits of the sequence: the
	// record stands for a message that was removed, in its own place or elsewhere.
	flagHeader    = 1 << 31
	flagErased    = 1 << 63
	flagTombstone = 1 << 62
	// sectorSize is the smallest unit in which disks write.
	sectorSize = 512
)

// blockRecord is a record of a block.
type blockRecord struct {
	data []byte
	seq  uint64
	// message reports that the record is a message, rather than a mark of a removed one.
	message bool
	stored  int64
}

// block is one file of messages.
type block struct {
	path  string
	index uint32
	hash  *highwayhash.Digest64
}

// listBlocks returns the blocks of a stream, in their order.
func listBlocks(folder, stream string) (all []block, err error) {
	entries, err := os.ReadDir(filepath.Join(folder, messageFolder))
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		b := block{path: filepath.Join(folder, messageFolder, entry.Name())}
		name, ok := strings.CutSuffix(entry.Name(), blockSuffix)
		if _, err := fmt.Sscan(name, &b.index); !ok || err != nil {
			continue
		}
		key := sha256.Sum256(fmt.Appendf(nil, "%s-%d", stream, b.index))
		if b.hash, err = highwayhash.NewDigest64(key[:]); err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b block) int { return int(a.index) - int(b.index) })
	return all, nil
}

// record returns the record at the begin of data, and false if that is none or a damaged one.
func (b *block) record(data []byte) (r blockRecord, ok bool) {
	if len(data) < emptyRecord {
		return r, false
	}
	length := binary.LittleEndian.Uint32(data)
	hasHeader := length&flagHeader != 0
	length &^= flagHeader
	subject := int(binary.LittleEndian.Uint16(data[20:]))
	if length < emptyRecord || length > maxRecord || uint64(length) > uint64(len(data)) {
		return r, false
	}
	r.data = data[:length]
	body := r.data[recordHeader : length-hashSize]
	skip := subject
	if hasHeader {
		skip += 4
	}
	if skip > len(body) ||
		!bytes.Equal(b.sum(data[4:20], body[:subject], body[skip:]), r.data[length-hashSize:]) {
		return r, false
	}
	seq := binary.LittleEndian.Uint64(data[4:])
	r.stored = int64(binary.LittleEndian.Uint64(data[12:]))
	r.seq = seq &^ (flagErased | flagTombstone)
	r.message = r.seq == seq && seq > 0
	return r, true
}

func (b *block) sum(parts ...[]byte) []byte {
	b.hash.Reset()
	for _, part := range parts {
		_, _ = b.hash.Write(part) // never fails
	}
	return b.hash.Sum(nil)
}

// erased returns a record that stands for a removed message. The server keeps the sequence.
func (b *block) erased(seq uint64, stored int64) []byte {
	data := make([]byte, recordHeader, emptyRecord)
	binary.LittleEndian.PutUint32(data, emptyRecord)
	binary.LittleEndian.PutUint64(data[4:], seq|flagErased)
	binary.LittleEndian.PutUint64(data[12:], uint64(stored))
	return append(data, b.sum(data[4:20])...)
}

// scan calls found with the records of a block, and lost with each damaged part and the record
// behind it, which is nil at the end. last is the sequence of the last message before the block.
func (b *block) scan(
	data []byte, last uint64, found func(blockRecord), lost func(part []byte, next *blockRecord),
) {
	for at := 0; at < len(data); {
		if r, ok := b.record(data[at:]); ok {
			if r.message {
				last = r.seq
			}
			found(r)
			at += len(r.data)
			continue
		}
		end, next := b.resync(data, at, last)
		lost(data[at:end], next)
		at = end
	}
}

// resync returns where the next record begins that is not damaged, and the record; the end of the
// block and nil without one.
func (b *block) resync(data []byte, from int, last uint64) (at int, next *blockRecord) {
	for at = from + 1; at+emptyRecord <= len(data); at++ {
		seq := binary.LittleEndian.Uint64(data[at+4:]) &^ (flagErased | flagTombstone)
		if seq <= last || seq>>48 > 0 {
			continue
		}
		if r, ok := b.record(data[at:]); ok {
			return at, &r
		}
	}
	return len(data), nil
}

// isTorn reports whether the last part of the last block may be a message whose write a crash or a
// power cut has interrupted, so that nobody was told that it is stored: it is shorter than it
// begins with, or a sector of it was not written.
func isTorn(part []byte, offset int) bool {
	if len(part) < emptyRecord {
		return true
	}
	length := binary.LittleEndian.Uint32(part) &^ flagHeader
	if length >= emptyRecord && length <= maxRecord && uint64(length) > uint64(len(part)) {
		return true
	}
	for len(part) > 0 {
		n := min(sectorSize-offset%sectorSize, len(part))
		if n >= hashSize && len(bytes.Trim(part[:n], "\x00")) == 0 {
			return true
		}
		part, offset = part[n:], offset+n
	}
	return false
}

// lastStored returns the last sequence of a stream by the state that the server has stored, which
// is as old as its last orderly stop, or some minutes; 0 if there is none.
func lastStored(folder, stream string) uint64 {
	data, err := os.ReadFile(filepath.Join(folder, messageFolder, stateFile))
	if err != nil || len(data) < 2+hashSize {
		return 0
	}
	key := sha256.Sum256([]byte(stream))
	hash, err := highwayhash.NewDigest64(key[:])
	if err != nil {
		return 0
	}
	body := data[:len(data)-hashSize]
	_, _ = hash.Write(body) // never fails
	if !bytes.Equal(hash.Sum(nil), data[len(body):]) {
		return 0
	}
	body = body[2:]      // magic number and version
	var values [5]uint64 // messages, bytes, first sequence, time of the first, last sequence
	for i := range values {
		value, n := binary.Uvarint(body)
		if n <= 0 {
			return 0
		}
		values[i], body = value, body[n:]
	}
	return values[4]
}

func storedAt(nanos int64) time.Time {
	if nanos <= 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos).UTC()
}
