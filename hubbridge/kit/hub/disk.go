package hub

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"

	"hubcloud/streams/disk"
)

const (
	fileName = "hub.journal"
	// headerBytes is the size of what is before each record: its length, the CRC of the length, and
	// the CRC of the record, 4 bytes each, little endian.
	headerBytes = 12
	// sectorBytes is the smallest unit in which disks write.
	sectorBytes = 512
	// maxRecordBytes is more than any record has: a greater length is damage.
	maxRecordBytes = 256 << 20
	// minRewriteBytes is the size up to which a file is not rewritten.
	minRewriteBytes = 1 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// record is one record of the file. Every field is optional.
type record struct {
	// Log is the log id, in the first record of a file.
	Log string `json:"log,omitempty"`
	// Events are the events from the number First on.
	First  uint64            `json:"first,omitempty"`
	Events []json.RawMessage `json:"events,omitempty"`
	// Through is the number up to which events are dropped.
	Through uint64                     `json:"through,omitempty"`
	Set     map[string]json.RawMessage `json:"set,omitempty"`
	Delete  []string                   `json:"delete,omitempty"`
}

// store is the file of a journal.
type store struct {
	dir    string
	lock   *disk.Lock
	file   *os.File
	size   int64 // of the complete records
	base   int64 // size after the last rewrite
	synced bool
	broken error // of a failed write that may have left an incomplete record
}

// openDisk locks dir, opens the file in it if there is one, and calls apply for each record in
// order.
func openDisk(dir string, apply func(record)) (*store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create journal directory: %w", err)
	}
	lock, err := disk.AcquireLock(filepath.Join(dir, "lock"))
	if errors.Is(err, disk.ErrInUse) {
		return nil, fmt.Errorf("%w: %s", ErrInUse, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	d := &store{dir: dir, lock: lock}
	if err := d.load(apply); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *store) load(apply func(record)) error {
	f, err := os.OpenFile(d.path(), os.O_RDWR, 0o600)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	d.file = f
	data, err := os.ReadFile(d.path())
	if err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	complete, err := decode(data, apply)
	if err != nil {
		return fmt.Errorf("%w: %s", err, d.path())
	}
	if complete < len(data) {
		if err := f.Truncate(int64(complete)); err != nil {
			return fmt.Errorf("remove incomplete journal record: %w", err)
		}
	}
	if _, err := f.Seek(int64(complete), 0); err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	d.size, d.base = int64(complete), int64(complete)
	return nil
}

// decode calls apply for each record in data and returns the size of the complete records. A crash
// may leave an incomplete record at the end, which decode ignores; any other damage is ErrCorrupt.
func decode(data []byte, apply func(record)) (complete int, err error) {
	for complete < len(data) {
		rest := data[complete:]
		if len(bytes.TrimRight(rest, "\x00")) < headerBytes {
			return complete, nil // no record has only zeros
		}
		length := int(binary.LittleEndian.Uint32(rest))
		if length > maxRecordBytes || checksum(rest[:4]) != binary.LittleEndian.Uint32(rest[4:]) {
			return complete, ErrCorrupt
		}
		if len(rest) < headerBytes+length {
			return complete, nil
		}
		body := rest[headerBytes : headerBytes+length]
		if checksum(body) != binary.LittleEndian.Uint32(rest[8:]) {
			if len(bytes.Trim(rest[headerBytes+length:], "\x00")) == 0 && lacksSector(body, complete+headerBytes) {
				return complete, nil
			}
			return complete, ErrCorrupt
		}
		var r record
		if json.Unmarshal(body, &r) != nil {
			return complete, ErrCorrupt
		}
		apply(r)
		complete += headerBytes + length
	}
	return complete, nil
}

// lacksSector reports whether a sector of a record, which begins at an offset in the file, was not
// written before a power cut: it has only zeros then, and JSON has none. Damage of a record that
// was written, and whose numbers may have been seen, looks different.
func lacksSector(body []byte, offset int) bool {
	for len(body) > 0 {
		n := min(sectorBytes-offset%sectorBytes, len(body))
		if len(bytes.Trim(body[:n], "\x00")) == 0 {
			return true
		}
		body, offset = body[n:], offset+n
	}
	return false
}

func checksum(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

func encode(r record) ([]byte, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode journal record: %w", err)
	}
	frame := make([]byte, headerBytes, headerBytes+len(body))
	binary.LittleEndian.PutUint32(frame, uint32(len(body)))
	binary.LittleEndian.PutUint32(frame[4:], checksum(frame[:4]))
	binary.LittleEndian.PutUint32(frame[8:], checksum(body))
	return append(frame, body...), nil
}

// append appends a record in one write. If the write fails, append truncates the file to its former
// size.
func (d *store) append(r record) error {
	if d.broken != nil {
		return d.broken
	}
	frame, err := encode(r)
	if err != nil {
		return err
	}
	if _, err := d.file.Write(frame); err != nil {
		err = fmt.Errorf("write journal: %w", err)
		if _, seekErr := d.file.Seek(d.size, 0); seekErr != nil || d.file.Truncate(d.size) != nil {
			d.broken = err
		}
		return err
	}
	d.size += int64(len(frame))
	d.synced = false
	return nil
}

func (d *store) sync() error {
	if d.synced {
		return nil
	}
	if err := d.file.Sync(); err != nil {
		return fmt.Errorf("sync journal: %w", err)
	}
	d.synced = true
	return nil
}

// mostlyHistory reports whether a rewrite would shrink the file considerably.
func (d *store) mostlyHistory() bool { return d.size > minRewriteBytes && d.size > 3*d.base }

// rewrite replaces the file with one of the given records. After a crash, either file is complete.
func (d *store) rewrite(records []record) error {
	var data []byte
	for _, r := range records {
		frame, err := encode(r)
		if err != nil {
			return err
		}
		data = append(data, frame...)
	}
	if err := disk.Write(d.path(), data, 0o600); err != nil {
		return fmt.Errorf("rewrite journal: %w", err)
	}
	f, err := os.OpenFile(d.path(), os.O_RDWR, 0o600)
	if err == nil {
		_, err = f.Seek(int64(len(data)), 0)
	}
	if err != nil { // the former file has no name any more
		d.broken = fmt.Errorf("open journal: %w", err)
		return d.broken
	}
	if d.file != nil {
		_ = d.file.Close()
	}
	d.file, d.size, d.base, d.synced, d.broken = f, int64(len(data)), int64(len(data)), true, nil
	return nil
}

func (d *store) close() error {
	var err error
	if d.file != nil {
		err = errors.Join(d.file.Sync(), d.file.Close())
	}
	return errors.Join(err, d.lock.Release())
}

func (d *store) path() string { return filepath.Join(d.dir, fileName) }
