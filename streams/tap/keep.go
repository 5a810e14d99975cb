package tap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/disk"
	"hubcloud/streams/feed"
)

const (
	// checkpointShare is the least ratio of the pause between two checkpoints to the time that
	// writing the last one took.
	checkpointShare = 20
	// lastFlush is how long an ending tap waits for the reader of its output.
	lastFlush = time.Second
)

// ErrCheckpointTaken reports that another tap uses the checkpoint.
var ErrCheckpointTaken = errors.New("another tap uses this checkpoint")

// resume opens the checkpoint, if the tap has one, and restores the hubs' positions from it. The
// caller must call end.
func (t *Tap) resume() (end func(), err error) {
	if t.cfg.Checkpoint == "" {
		return func() {}, nil
	}
	t.file, err = disk.OpenOwned(t.cfg.Checkpoint)
	if errors.Is(err, disk.ErrInUse) {
		return nil, fmt.Errorf("%w: %s", ErrCheckpointTaken, t.cfg.Checkpoint)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	end = func() { _ = t.file.Close() } // it fails only if it was closed before
	c, exists, err := readCheckpoint(t.file)
	if err == nil && !exists {
		return end, nil
	}
	var hubs map[domain.HubID]feed.DecodedCursor
	if err == nil {
		hubs, err = c.positions()
	}
	if err != nil {
		end()
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	t.cfg.Since, t.cfg.New, t.resumed = c.Since, false, true
	for id, at := range hubs {
		t.hubs.restore(id, at)
	}
	t.cfg.Logger.Info(
		"resuming from checkpoint", "file", t.cfg.Checkpoint, "written", c.Written,
		"hubs", len(c.Hubs),
	)
	return end, nil
}

// keepCheckpoints writes a checkpoint every CheckpointEvery, if positions have changed, until ctx
// ends.
func (t *Tap) keepCheckpoints(ctx context.Context) error {
	if t.cfg.Checkpoint == "" {
		return nil
	}
	var saved uint64
	pause := time.NewTimer(t.cfg.CheckpointEvery)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-pause.C:
		}
		var took time.Duration
		if t.hubs.changes() != saved {
			changes, wrote, err := t.save(ctx)
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			saved, took = changes, wrote
		}
		pause.Reset(max(t.cfg.CheckpointEvery, checkpointShare*took))
	}
}

// save writes a checkpoint. It returns the number of position changes that the checkpoint includes
// and the time that writing its file took.
func (t *Tap) save(ctx context.Context) (changes uint64, took time.Duration, err error) {
	hubs, changes := t.hubs.positions()
	// A position advances after its records are written. Once these are flushed, the positions read
	// before the flush may be saved.
	if err := t.cfg.Output.Flush(ctx); err != nil {
		return 0, 0, err
	}
	began := time.Now()
	c := Checkpoint{
		Version: checkpointVersion, Since: t.cfg.Since, Written: began,
		Hubs: make(map[domain.HubID]string, len(hubs)),
	}
	for id, at := range hubs {
		c.Hubs[id] = at.Cursor()
	}
	if err := t.file.Write(c); err != nil {
		return 0, 0, fmt.Errorf("checkpoint: %w", err)
	}
	return changes, time.Since(began), nil
}

// lastCheckpoint writes the checkpoint of a tap that ends in order. Without it the next tap would
// repeat some records.
func (t *Tap) lastCheckpoint() error {
	ctx, cancel := context.WithTimeout(context.Background(), lastFlush)
	defer cancel()
	if t.cfg.Checkpoint == "" || t.hubs.changes() == 0 {
		if err := t.cfg.Output.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return nil
	}
	_, _, err := t.save(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		t.cfg.Logger.Warn("the output has not been read to its end; the last checkpoint is older")
		return nil
	}
	return err
}
