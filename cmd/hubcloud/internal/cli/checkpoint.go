package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"hubcloud/streams/disk"
)

const (
	checkpointVersion = 1
	// maxCheckpoint is the largest file that is read, and maxPosition the longest position, in
	// bytes.
	maxCheckpoint, maxPosition = 64 << 10, 4096
)

var errNoCheckpoint = errors.New("not a checkpoint of `hubcloud forward`, or a damaged one")

// storedCheckpoint is the content of a checkpoint's file, in JSON.
type storedCheckpoint struct {
	Version int `json:"hubcloud_forward_checkpoint"`
	// Position is the feed's position before which every event was delivered.
	Position string `json:"position"`
	// Part is the part of the hubs that the position is for, such as 2/8; empty for all hubs.
	Part string `json:"part,omitempty"`
}

func decodeCheckpoint(text []byte) (storedCheckpoint, error) {
	var c storedCheckpoint
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil || decoder.More() ||
		c.Version != checkpointVersion || c.Position == "" || len(c.Position) > maxPosition ||
		strings.ContainsFunc(c.Position, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return storedCheckpoint{}, errNoCheckpoint
	}
	return c, nil
}

// checkpoint is a file with a position of the feed. Only one checkpoint can have a file open.
type checkpoint struct {
	path, part string
	lock       *disk.Lock
	// position is the position in the file; empty if there was no file.
	position string
}

// openCheckpoint opens the checkpoint at path, which need not exist, for a part of the hubs. A
// checkpoint of another part is an error: its position says nothing about these hubs. The lock is a
// file beside it.
func openCheckpoint(path, part string) (*checkpoint, error) {
	lock, err := disk.AcquireLock(path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c := &checkpoint{path: path, part: part, lock: lock}
	if err := c.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), lock.Release())
	}
	return c, nil
}

func (c *checkpoint) load() error {
	info, err := os.Stat(c.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Size() > maxCheckpoint:
		return errNoCheckpoint
	}
	text, err := os.ReadFile(c.path)
	if err != nil {
		return err
	}
	stored, err := decodeCheckpoint(text)
	if err != nil {
		return err
	}
	if stored.Part != c.part {
		return fmt.Errorf(
			"it is the checkpoint of --part %q, not of %q: each part needs a file of its own",
			stored.Part, c.part,
		)
	}
	c.position = stored.Position
	return nil
}

// save replaces the position in the file. After a crash the file has either the old or the new one.
func (c *checkpoint) save(position string) error {
	if position == c.position {
		return nil
	}
	text, err := json.Marshal(storedCheckpoint{checkpointVersion, position, c.part})
	if err != nil {
		return err
	}
	if err := disk.Write(c.path, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	c.position = position
	return nil
}

// close unlocks the file.
func (c *checkpoint) close() error { return c.lock.Release() }
