package disk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ErrDamaged reports that a file does not have what its program writes.
var ErrDamaged = errors.New("of another program, or damaged; move it away to start over")

// Owned is a file with a value in JSON, which one process at a time has open. The lock is a file
// beside it, since each Write replaces the file.
type Owned struct {
	path string
	lock *Lock
}

// OpenOwned locks the file at path, which need not exist. The error matches ErrInUse if another
// process has it open.
func OpenOwned(path string) (*Owned, error) {
	lock, err := AcquireLock(path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &Owned{path, lock}, nil
}

// Read reads the value, and reports false without a file. The error matches ErrDamaged for a file
// of more than most bytes, for what is not a single value, and for members that into does not have.
func (o *Owned) Read(most int64, into any) (exists bool, err error) {
	info, err := os.Stat(o.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if info.Size() > most {
		return true, fmt.Errorf("%s: %w", o.path, ErrDamaged)
	}
	text, err := os.ReadFile(o.path)
	if err != nil {
		return true, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if decoder.Decode(into) != nil || decoder.More() {
		return true, fmt.Errorf("%s: %w", o.path, ErrDamaged)
	}
	return true, nil
}

// Write replaces the value. After a crash the file has either the former or the new one.
func (o *Owned) Write(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return Write(o.path, append(text, '\n'), 0o600)
}

// Close ends the ownership, and leaves the file in place.
func (o *Owned) Close() error { return o.lock.Release() }
