package journal

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"syscall"
)

const (
	fileName = "hub.journal"
	// frameHead is the length and the CRC before each record, 4 bytes each, little endian.
	frameHead = 8
	// maxFrame is more than any record has: a length beyond it is damage.
	maxFrame = 256 << 20
	// leastRewrite is the size below which a file is not worth rewriting.
	leastRewrite = 1 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// record is one frame of the file. Every field may be absent.
type record struct {
	// Log is the identity, in the first record of a file.
	Log string `json:"log,omitempty"`
	// Events are events from the number First on.
	First  uint64            `json:"first,omitempty"`
	Events []json.RawMessage `json:"events,omitempty"`
	// Through is the number up to which events are let go.
	Through uint64                     `json:"through,omitempty"`
	Set     map[string]json.RawMessage `json:"set,omitempty"`
	Delete  []string                   `json:"delete,omitempty"`
}

// disk is the file of a journal.
type disk struct {
	dir    string
	lock   *os.File
	file   *os.File
	size   int64 // of the whole frames in it
	base   int64 // its size when it was last written anew
	synced bool
	broken error // set when the file may end in a part of a frame that could not be taken back
}

// openDisk opens the file in dir, if there is one, and gives apply its records in order.
func openDisk(dir string, apply func(record)) (*disk, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the journal's directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the journal's lock: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("%w: %s", ErrInUse, dir)
	}
	d := &disk{dir: dir, lock: lock}
	if err := d.load(apply); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *disk) load(apply func(record)) error {
	f, err := os.OpenFile(d.path(), os.O_RDWR, 0o600)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open the journal: %w", err)
	}
	d.file = f
	data, err := os.ReadFile(d.path())
	if err != nil {
		return fmt.Errorf("read the journal: %w", err)
	}
	whole, err := decode(data, apply)
	if err != nil {
		return fmt.Errorf("%w: %s", err, d.path())
	}
	if whole < len(data) {
		if err := f.Truncate(int64(whole)); err != nil {
			return fmt.Errorf("cut a torn record off the journal: %w", err)
		}
	}
	if _, err := f.Seek(int64(whole), 0); err != nil {
		return fmt.Errorf("open the journal: %w", err)
	}
	d.size, d.base = int64(whole), int64(whole)
	return nil
}

// decode reads records until the data ends, and returns how many bytes of it are whole frames. What
// a crash may have left at the end (a part of a frame, or zeros) is not among them; anything else
// that is no frame is ErrCorrupt.
func decode(data []byte, apply func(record)) (whole int, err error) {
	for whole < len(data) {
		rest := data[whole:]
		if len(rest) < frameHead {
			return whole, nil
		}
		length := int(binary.LittleEndian.Uint32(rest))
		if length > maxFrame || length == 0 {
			if len(bytes.Trim(rest, "\x00")) == 0 {
				return whole, nil
			}
			return whole, ErrCorrupt
		}
		if len(rest) < frameHead+length {
			return whole, nil
		}
		body := rest[frameHead : frameHead+length]
		var r record
		if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(rest[4:]) ||
			json.Unmarshal(body, &r) != nil {
			if len(bytes.Trim(rest[frameHead+length:], "\x00")) == 0 {
				return whole, nil // the last one
			}
			return whole, ErrCorrupt
		}
		apply(r)
		whole += frameHead + length
	}
	return whole, nil
}

func encode(r record) ([]byte, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode a record of the journal: %w", err)
	}
	frame := make([]byte, frameHead, frameHead+len(body))
	binary.LittleEndian.PutUint32(frame, uint32(len(body)))
	binary.LittleEndian.PutUint32(frame[4:], crc32.Checksum(body, castagnoli))
	return append(frame, body...), nil
}

// append adds a record in one write. When that fails, what it left is taken back.
func (d *disk) append(r record) error {
	if d.broken != nil {
		return d.broken
	}
	frame, err := encode(r)
	if err != nil {
		return err
	}
	if _, err := d.file.Write(frame); err != nil {
		err = fmt.Errorf("write the journal: %w", err)
		if _, seekErr := d.file.Seek(d.size, 0); seekErr != nil || d.file.Truncate(d.size) != nil {
			d.broken = err
		}
		return err
	}
	d.size += int64(len(frame))
	d.synced = false
	return nil
}

func (d *disk) sync() error {
	if d.synced {
		return nil
	}
	if err := d.file.Sync(); err != nil {
		return fmt.Errorf("sync the journal: %w", err)
	}
	d.synced = true
	return nil
}

func (d *disk) mostlyHistory() bool { return d.size > leastRewrite && d.size > 3*d.base }

// rewrite puts a new file of the given records in the place of the old one: after a crash there is
// one or the other.
func (d *disk) rewrite(records []record) (err error) {
	fresh := d.path() + ".new"
	f, err := os.OpenFile(fresh, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("rewrite the journal: %w", err)
	}
	var size int64
	defer func() {
		if err != nil {
			err = fmt.Errorf(
				"rewrite the journal: %w", errors.Join(err, f.Close(), os.Remove(fresh)),
			)
		}
	}()
	for _, r := range records {
		frame, err := encode(r)
		if err != nil {
			return err
		}
		if _, err := f.Write(frame); err != nil {
			return err
		}
		size += int64(len(frame))
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(fresh, d.path()); err != nil {
		return err
	}
	if dir, err := os.Open(d.dir); err == nil {
		_ = dir.Sync() // the rename itself; not every file system can
		_ = dir.Close()
	}
	if d.file != nil {
		_ = d.file.Close()
	}
	d.file, d.size, d.base, d.synced, d.broken = f, size, size, true, nil
	return nil
}

func (d *disk) close() error {
	var err error
	if d.file != nil {
		err = errors.Join(d.file.Sync(), d.file.Close())
	}
	return errors.Join(err, d.lock.Close())
}

func (d *disk) path() string { return filepath.Join(d.dir, fileName) }
