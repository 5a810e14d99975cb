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
	"hubcloud/streams/durablefile"
	"hubcloud/streams/hublog"
)

// Checkpoint is how far a tap has got, as its file holds it: a line for the whole, one for each hub
// with the cursor behind which to go on, and one with the number of hubs and a check sum (CRC-32C)
// of all before it.
//
//	hubcloud-tap-checkpoint 1 since=2026-01-02T03:04:05Z written=2026-01-02T05:00:00Z
//	hub-7k2m-q4xd-93ta AWNhZmUAAAAAAAAAKgGbxxxxxxxx
//	end 1 0a1b2c3d
//
// The cursors are those of the API.
type Checkpoint struct {
	// Since is where hubs begin that are not in it; zero is their first event.
	Since time.Time
	// Written is when it was written.
	Written time.Time
	Hubs    map[domain.HubID]hublog.Position
}

const (
	checkpointMagic = "hubcloud-tap-checkpoint 1"
	// maxCheckpoint bounds a file that is read, at some 60 bytes a hub.
	maxCheckpoint = 1 << 30
)

var errNoCheckpoint = errors.New("not a checkpoint of a tap, or a damaged one")

var checkpointSum = crc32.MakeTable(crc32.Castagnoli)

// Encode gives the checkpoint as its file holds it.
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
		cursor, err := c.Hubs[id].Cursor()
		if err != nil {
			return nil, fmt.Errorf("position of %s: %w", id, err)
		}
		fmt.Fprintf(&text, "%s %s\n", id, cursor)
	}
	fmt.Fprintf(&text, "end %d %08x\n", len(ids), crc32.Checksum(text.Bytes(), checkpointSum))
	return text.Bytes(), nil
}

// DecodeCheckpoint reads what Encode wrote.
func DecodeCheckpoint(text []byte) (Checkpoint, error) {
	body, end, ok := cutLastLine(text)
	if !ok {
		return Checkpoint{}, errNoCheckpoint
	}
	lines := bufio.NewScanner(bytes.NewReader(body))
	if !lines.Scan() {
		return Checkpoint{}, errNoCheckpoint
	}
	c := Checkpoint{Hubs: map[domain.HubID]hublog.Position{}}
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
		at, err := hublog.ParsePosition(text)
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

// cutLastLine cuts off the last line, which must be whole.
func cutLastLine(text []byte) (before []byte, last string, ok bool) {
	if len(text) == 0 || text[len(text)-1] != '\n' {
		return nil, "", false
	}
	at := bytes.LastIndexByte(text[:len(text)-1], '\n') + 1
	return text[:at], string(text[at : len(text)-1]), at > 0
}

// ReadCheckpoint reads a checkpoint's file. Errors: an fs.ErrNotExist when there is none, and those
// of a file that is no checkpoint.
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
		return c, fmt.Errorf("%s: %w; move it away to begin anew", path, err)
	}
	return c, nil
}

// Write puts the checkpoint into its file, in one step that a power cut undoes wholly or not at
// all.
func (c Checkpoint) Write(path string) error {
	text, err := c.Encode()
	if err != nil {
		return err
	}
	return durablefile.Write(path, text, 0o600)
}
