package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hubcloud/streams"
	"hubcloud/streams/disk"
	"hubcloud/streams/jsapi"
)

const (
	// maxChecked is how many bytes of a journal are read for damage before the server starts, the
	// newest ones. Everything of other streams is read: they are small.
	maxChecked = 1 << 30
	// damagedFolder, in a store, has copies of the files that were repaired.
	damagedFolder = "damaged"
)

// Hole is a range of messages of a stream that are lost.
type Hole struct {
	jsapi.Hole
	// File is the block that should have the messages.
	File string
}

// repairBlocks makes the server keep all messages of a stopped store that can be read, and the
// sequences of those that cannot: at a damaged message, the server would cut everything behind it
// off its file, and use its sequence again. It copies the files that it changes to damagedFolder.
//
// Only streams with one copy are repaired: a server of a cluster gets what it lacks from the
// others. The hubs' own streams need no repair, since the journal has what they lose.
func repairBlocks(store string, f StreamFolder, logger *slog.Logger) error {
	c, err := newBlockCheck(f)
	if err != nil || c == nil {
		return err
	}
	c.repaired = func(b *block, data []byte) error {
		if err := keepDamaged(store, f.Stream, b.path); err != nil {
			return err
		}
		// The server reads the blocks again without its stored state.
		state := filepath.Join(f.path, messageFolder, stateFile)
		if err := os.Remove(state); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if len(data) == 0 {
			return os.Remove(b.path)
		}
		return disk.Write(b.path, data, 0o640)
	}
	if err := c.run(); err != nil {
		return err
	}
	for _, hole := range c.damaged {
		logger.Error(
			"stored messages are damaged and lost; all others are kept", "file", hole.File,
			"lost", hole.String(),
		)
	}
	return nil
}

// keepDamaged copies a block.
func keepDamaged(store, stream, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	folder := filepath.Join(store, damagedFolder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	name := fmt.Sprintf("%s-%d-%s", stream, time.Now().UnixNano(), filepath.Base(path))
	return disk.Write(filepath.Join(folder, name), data, 0o600)
}

// Holes returns the holes in a stream of the account CLOUD in the data directory of a stopped
// broker, of which it reads the newest 1 GiB. It changes nothing. It is for streams of which
// messages are never removed, except the oldest ones.
func Holes(dataDir, stream string) ([]Hole, error) {
	return HolesIn(filepath.Join(
		dataDir, storeFolder, durableFolder, "jetstream", string(streams.AccountCloud), "streams", stream,
	))
}

// HolesIn is Holes for the folder of a stream.
func HolesIn(folder string) ([]Hole, error) {
	c, err := newBlockCheck(StreamFolder{Stream: filepath.Base(folder), path: folder})
	if err != nil || c == nil {
		return nil, err
	}
	err = c.run()
	return c.gaps, err
}

// blockCheck looks for damage in the blocks of a stream.
type blockCheck struct {
	stream string
	blocks []block
	// expected is the last sequence that the stream is known to have had, and end the last one of
	// which a record was read.
	expected, end uint64
	// repaired is called with the content that a damaged block should have, none if it should be
	// removed; nil to change nothing.
	repaired func(b *block, data []byte) error

	// last and stored are the sequence and the time of the last message that was read.
	last   uint64
	stored int64
	// gaps are all missing sequences between messages, damaged the sequences of damaged records.
	gaps, damaged []Hole
}

// newBlockCheck returns the check of a stream; nil if its blocks cannot be checked or need no
// check.
func newBlockCheck(f StreamFolder) (*blockCheck, error) {
	meta, err := os.ReadFile(filepath.Join(f.path, metaFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var config struct {
		Replicas    int    `json:"num_replicas"`
		Compression string `json:"compression"`
	}
	if json.Unmarshal(meta, &config) != nil || config.Replicas > 1 ||
		config.Compression != "" && config.Compression != "none" {
		return nil, nil
	}
	if _, err := os.Stat(filepath.Join(f.path, metaKeyFile)); err == nil {
		return nil, nil // encrypted, so not written by this service
	}
	c := &blockCheck{stream: f.Stream, expected: lastStored(f.path, f.Stream)}
	if c.blocks, err = listBlocks(f.path, f.Stream); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if strings.HasPrefix(f.Stream, strings.TrimSuffix(streams.JournalStream(0), "0")) {
		c.blocks = newest(c.blocks, maxChecked)
	}
	return c, nil
}

// newest returns the last blocks, at most so many bytes of them, but at least one.
func newest(blocks []block, limit int64) []block {
	for i, b := range slices.Backward(blocks) {
		if info, err := os.Stat(b.path); err == nil {
			limit -= info.Size()
		}
		if limit < 0 {
			return blocks[min(i+1, len(blocks)-1):]
		}
	}
	return blocks
}

// run checks all blocks.
func (c *blockCheck) run() error {
	for i := range c.blocks {
		if err := c.check(&c.blocks[i], i == len(c.blocks)-1); err != nil {
			return err
		}
	}
	return nil
}

// check checks a block, and repairs it.
func (c *blockCheck) check(b *block, final bool) error {
	data, err := os.ReadFile(b.path)
	if err != nil {
		return err
	}
	var kept []byte // the content without what is damaged
	changed := false
	b.scan(data, c.last, func(r blockRecord) {
		kept = append(kept, r.data...)
		c.found(b, r)
	}, func(part []byte, next *blockRecord) {
		atEnd := next == nil && final
		if atEnd && c.end >= c.expected && isTorn(part, len(data)-len(part)) {
			kept = append(kept, part...) // the server removes it
			return
		}
		changed = true
		switch {
		case atEnd:
			c.expected = max(c.expected, c.end+1)
		case next == nil: // the next block shows how many messages are lost
			c.damaged = append(c.damaged, c.hole(b, c.last+1, 0))
		case next.message && next.seq > c.last+1:
			kept = append(kept, b.erased(next.seq-1, c.stored)...)
			c.damaged = append(c.damaged, c.hole(b, next.seq-1, next.stored))
		}
	})
	if final && c.expected > c.end {
		kept, changed = append(kept, b.erased(c.expected, c.stored)...), true
		c.damaged = append(c.damaged, c.hole(b, c.expected, 0))
		c.end = c.expected
	}
	if final && c.end > c.last {
		c.gaps = append(c.gaps, c.hole(b, c.end, 0))
	}
	if !changed || c.repaired == nil {
		return nil
	}
	return c.repaired(b, kept)
}

// found counts a record of the stream.
func (c *blockCheck) found(b *block, r blockRecord) {
	c.end = max(c.end, r.seq)
	if !r.message || r.seq <= c.last {
		return
	}
	if r.seq > c.last+1 && (c.last > 0 || c.stream == streams.DirectoryStream) {
		c.gaps = append(c.gaps, c.hole(b, r.seq-1, r.stored))
	}
	c.last, c.stored = r.seq, r.stored
}

// hole returns the hole behind the last message up to a sequence.
func (c *blockCheck) hole(b *block, to uint64, after int64) Hole {
	from := c.last + 1
	if c.last == 0 && c.stream != streams.DirectoryStream {
		from = to // the messages before it have expired
	}
	return Hole{jsapi.Hole{
		From: from, To: to, Before: storedAt(c.stored), After: storedAt(after),
	}, b.path}
}
