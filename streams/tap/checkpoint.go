package tap

import (
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/disk"
	"hubcloud/streams/feed"
)

const (
	checkpointVersion = 1
	// maxCheckpoint is the largest file that is read, in bytes. A hub takes about 60.
	maxCheckpoint = 1 << 30
)

// Checkpoint has the positions of a tap. Its file has them as the API's cursors.
type Checkpoint struct {
	Version int `json:"hubcloud_tap_checkpoint"`
	// Since is the start for hubs without a position; the zero time is their first event.
	Since time.Time `json:"since"`
	// Written is the time at which the checkpoint was written.
	Written time.Time `json:"written"`
	// Hubs has the cursor of each hub after which to continue.
	Hubs map[domain.HubID]string `json:"hubs"`
}

// readCheckpoint reads a checkpoint, and reports false if there is none.
func readCheckpoint(file *disk.Owned) (c Checkpoint, exists bool, err error) {
	exists, err = file.Read(maxCheckpoint, &c)
	if err == nil && exists && c.Version != checkpointVersion {
		err = disk.ErrDamaged
	}
	return c, exists, err
}

// positions returns the decoded cursors.
func (c Checkpoint) positions() (map[domain.HubID]feed.DecodedCursor, error) {
	all := make(map[domain.HubID]feed.DecodedCursor, len(c.Hubs))
	for id, cursor := range c.Hubs {
		at, err := feed.DecodeCursor(cursor)
		if _, ok := domain.ParseHubID(string(id)); !ok || err != nil {
			return nil, fmt.Errorf("cursor of %q: %w", id, disk.ErrDamaged)
		}
		all[id] = at
	}
	return all, nil
}
