package tap

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
	"strings"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/disk"
	"hubcloud/streams/feed"
)

// Checkpoint has the positions of a tap. Its file has a header line, a line for each hub with the
// cursor after which to continue, and a last line with the number of hubs and a checksum (CRC-32C)
// of everything before it.
//
//	hubcloud-tap-checkpoint 1 since=2026-01-02T03:04:05Z written=2026-01-02T05:00:00Z
//	hub-7k2m-q4xd-93ta AWNhZmUAAAAAAAAAKgGbxxxxxxxx
//	end 1 0a1b2c3d
//
// The cursors are the API's.
type Checkpoint struct {
	// Since is the start for hubs without a position; the zero time is their first event.
	Since time.Time
	// Written is the time at which the checkpoint was written.
	Written time.Time
	Hubs    map[domain.HubID]feed.DecodedCursor
}

const (
	checkpointMagic = "hubcloud-tap-checkpoint 1"
	// maxCheckpoint is the largest file that is read, in bytes. A hub takes about 60.
	maxCheckpoint = 1 << 30
)

var errNoCheckpoint = errors.New("not a tap checkpoint, or a damaged one")

var checkpointSum = crc32.MakeTable(crc32.Castagnoli)

// Encode returns the checkpoint in the form of its file.
func (c Checkpoint) Encode() ([]byte, error) {
	var text bytes.Buffer
	fmt.Fprintf(
		&text, "%s since=%s written=%s\n", checkpointMagic, c.Since.UTC().Format(time.RFC3339Nano),
		c.Written.UTC().Format(time.RFC3339Nano),
	)
	ids := make([]domain.HubID, 0, len(c.Hubs))
	for id := range c.Hubs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		fmt.Fprintf(&text, "%s %s\n", id, c.Hubs[id].Cursor())
	}
	fmt.Fprintf(&text, "end %d %08x\n", len(ids), crc32.Checksum(text.Bytes(), checkpointSum))
	return text.Bytes(), nil
}

// DecodeCheckpoint parses the output of Encode.
func DecodeCheckpoint(text []byte) (Checkpoint, error) {
	body, end, ok := cutLastLine(text)
	if !ok {
		return Checkpoint{}, errNoCheckpoint
	}
	lines := bufio.NewScanner(bytes.NewReader(body))
	if !lines.Scan() {
		return Checkpoint{}, errNoCheckpoint
	}
	c := Checkpoint{Hubs: map[domain.HubID]feed.DecodedCursor{}}
	fields := strings.Split(lines.Text(), " ")
	if len(fields) != 4 || fields[0]+" "+fields[1] != checkpointMagic {
		return Checkpoint{}, errNoCheckpoint
	}
	for i, into := range []*time.Time{&c.Since, &c.Written} {
		_, value, _ := strings.Cut(fields[2+i], "=")
		at, err := time.Parse(time.RFC3339Nano, value)
		if err != nil {
			return Checkpoint{}, errNoCheckpoint
		}
		*into = at
	}
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), " ")
		id, ok := domain.ParseHubID(name)
		at, err := feed.DecodeCursor(text)
		if !ok || err != nil {
			return Checkpoint{}, errNoCheckpoint
		}
		c.Hubs[id] = at
	}
	if lines.Err() != nil ||
		end != fmt.Sprintf("end %d %08x", len(c.Hubs), crc32.Checksum(body, checkpointSum)) {
		return Checkpoint{}, errNoCheckpoint
	}
	return c, nil
}

// cutLastLine splits off the last line. It reports false if text does not end with a newline or has
// only one line.
func cutLastLine(text []byte) (before []byte, last string, ok bool) {
	if len(text) == 0 || text[len(text)-1] != '\n' {
		return nil, "", false
	}
	at := bytes.LastIndexByte(text[:len(text)-1], '\n') + 1
	return text[:at], string(text[at : len(text)-1]), at > 0
}

// ReadCheckpoint reads a checkpoint file. It returns an error that matches fs.ErrNotExist if there
// is no such file.
func ReadCheckpoint(path string) (Checkpoint, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Checkpoint{}, err
	}
	if info.Size() > maxCheckpoint {
		return Checkpoint{}, fmt.Errorf("%s: %w", path, errNoCheckpoint)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Checkpoint{}, err
	}
	c, err := DecodeCheckpoint(text)
	if err != nil {
		return c, fmt.Errorf("%s: %w; move it away to start over", path, err)
	}
	return c, nil
}

// Write writes the checkpoint to its file. After a crash the file has either the old or the new
// checkpoint.
func (c Checkpoint) Write(path string) error {
	text, err := c.Encode()
	if err != nil {
		return err
	}
	return disk.Write(path, text, 0o600)
}
