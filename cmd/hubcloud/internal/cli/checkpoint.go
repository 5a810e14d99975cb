package cli

import (
	"errors"
	"fmt"
	"strings"

	"hubcloud/streams/disk"
)

const (
	checkpointVersion = 1
	// maxCheckpoint is the largest file that is read, and maxPosition the longest position, in
	// bytes.
	maxCheckpoint, maxPosition = 64 << 10, 4096
)

// storedCheckpoint is the content of a checkpoint's file.
type storedCheckpoint struct {
	Version int `json:"hubcloud_forward_checkpoint"`
	// Position is the feed's position before which every event was delivered.
	Position string `json:"position"`
	// Part is the part of the hubs that the position is for, such as 2/8; empty for all hubs.
	Part string `json:"part,omitempty"`
}

// valid reports whether it is a checkpoint whose position can be sent.
func (c storedCheckpoint) valid() bool {
	return c.Version == checkpointVersion && c.Position != "" && len(c.Position) <= maxPosition &&
		!strings.ContainsFunc(c.Position, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

// checkpoint is a file with a position of the feed. Only one checkpoint can have a file open.
type checkpoint struct {
	file *disk.Owned
	part string
	// position is the position in the file; empty if there was no file.
	position string
}

// openCheckpoint opens the checkpoint at path, which need not exist, for a part of the hubs. A
// checkpoint of another part is an error: its position says nothing about these hubs.
func openCheckpoint(path, part string) (*checkpoint, error) {
	file, err := disk.OpenOwned(path)
	if err != nil {
		return nil, err
	}
	var stored storedCheckpoint
	exists, err := file.Read(maxCheckpoint, &stored)
	switch {
	case err == nil && exists && !stored.valid():
		err = fmt.Errorf("%s: %w", path, disk.ErrDamaged)
	case err == nil && exists && stored.Part != part:
		err = fmt.Errorf(
			"%s: it is the checkpoint of --part %q, not of %q: each part needs a file of its own",
			path, stored.Part, part,
		)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &checkpoint{file, part, stored.Position}, nil
}

// save replaces the position in the file.
func (c *checkpoint) save(position string) error {
	if position == c.position {
		return nil
	}
	if err := c.file.Write(storedCheckpoint{checkpointVersion, position, c.part}); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	c.position = position
	return nil
}

// close unlocks the file.
func (c *checkpoint) close() error { return c.file.Close() }
