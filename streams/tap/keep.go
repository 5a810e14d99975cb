package tap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

const (
	// checkpointShare: the pause between two checkpoints is at least so many times as long as the
	// last one took.
	checkpointShare = 20
	// lastFlush bounds what an ending tap waits for its reader.
	lastFlush = time.Second
)

// resume takes the checkpoint for this tap, and puts the hubs where it says. Whoever calls it
// unlocks it at the end.
func (t *Tap) resume() (unlock func(), err error) {
	if t.cfg.Checkpoint == "" {
		return func() {}, nil
	}
	if unlock, err = lock(t.cfg.Checkpoint); err != nil {
		return nil, err
	}
	c, err := ReadCheckpoint(t.cfg.Checkpoint)
	if errors.Is(err, fs.ErrNotExist) {
		return unlock, nil
	}
	if err != nil {
		unlock()
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	t.cfg.Since, t.cfg.New, t.resumed = c.Since, false, true
	for id, at := range c.Hubs {
		t.hubs.restore(id, at)
	}
	t.cfg.Log.Info(
		"going on from the checkpoint", "file", t.cfg.Checkpoint, "written", c.Written,
		"hubs", len(c.Hubs),
	)
	return unlock, nil
}

// ErrCheckpointTaken says that another tap uses the checkpoint.
var ErrCheckpointTaken = errors.New("another tap uses this checkpoint")

// lock keeps a second tap from a checkpoint, for as long as this process lives. It is on a file
// beside it, since the checkpoint itself is another file each time it is written.
func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close() // nothing was written
		return nil, fmt.Errorf("%w: %s", ErrCheckpointTaken, path)
	}
	return func() { _ = file.Close() }, nil // the lock goes with it
}

// keepCheckpoints writes a checkpoint now and then, until ctx ends.
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

// save writes a checkpoint of what is out of the tap's hands. It says up to which change of
// positions that is, and how long the writing took.
func (t *Tap) save(ctx context.Context) (changes uint64, took time.Duration, err error) {
	hubs, changes := t.hubs.positions()
	// Every position was taken after its records were written: once those are out, it may be kept.
	if err := t.cfg.Output.Flush(ctx); err != nil {
		return 0, 0, err
	}
	began := time.Now()
	c := Checkpoint{Since: t.cfg.Since, Written: began, Hubs: hubs}
	if err := c.Write(t.cfg.Checkpoint); err != nil {
		return 0, 0, fmt.Errorf("checkpoint: %w", err)
	}
	return changes, time.Since(began), nil
}

// lastCheckpoint writes the checkpoint of a tap that ends in order. Without it the next one repeats
// a little.
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
		t.cfg.Log.Warn("nobody has read the last of the output: the checkpoint is from before it")
		return nil
	}
	return err
}
