package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
)

// runChecks asks for the end of the journal when Sync wants to know it, and every checkEvery.
func (f *Follower) runChecks(ctx context.Context) error {
	var ticks <-chan time.Time // none for an offered follower, which is told
	if !f.offered {
		ticker := time.NewTicker(checkEvery)
		defer ticker.Stop()
		ticks = ticker.C
	}
	notify(f.check) // for what is stored already
	failed := false
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.check:
		case <-ticks:
		}
		err := f.readEnd(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrBeyondEnd), errors.Is(err, nats.ErrConnectionClosed):
			return err
		case err == nil:
			failed = false
			continue
		case !failed:
			f.journal.cfg.Logger.Warn(
				"end of the journal unknown; trying again", "group", f.group, "error", err,
			)
			failed = true
		}
		if !streams.Sleep(ctx, maxPause) {
			return ctx.Err()
		}
		notify(f.check)
	}
}

// readEnd asks the journal's leader for its end, for all calls of Sync that have come before.
func (f *Follower) readEnd(ctx context.Context) error {
	f.mu.Lock()
	asking, position := f.asking, f.position
	f.asking = nil
	f.mu.Unlock()
	info, err := f.journal.api.ConfirmedInfo(ctx, streams.JournalStream(f.group), position)

	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.asking = append(asking, f.asking...)
		return err
	}
	end := info.State.LastSeq
	if end < position {
		return fmt.Errorf("%w: it ends at %d, %d was read", ErrBeyondEnd, end, position)
	}
	for _, w := range asking {
		w.target = end
	}
	f.waiting = append(f.waiting, asking...)
	f.endWaits()
	if f.known = max(f.known, end); f.known > f.position {
		notify(f.wake)
	}
	f.setGauges()
	return nil
}
