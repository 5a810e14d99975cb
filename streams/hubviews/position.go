package hubviews

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hubcloud/streams/jsapi"
)

// storeTimeout bounds the storing of a position.
const storeTimeout = 10 * time.Second

// positionRecord is the value of a position in its bucket.
type positionRecord struct {
	// Synced is a commit of the journal: every view has the records of every commit up to it, on
	// disk.
	Synced uint64 `json:"synced"`
}

func (v *Views) positionKey() string { return positionKey(v.cfg.Groups, v.cfg.Group) }

func positionKey(groups, group int) string { return fmt.Sprintf("views.%d.%d", groups, group) }

// StoredPosition returns the position that the views of a group have stored in a bucket, 0 for none:
// every view has the records of every commit of the group's journal up to it, on disk.
func StoredPosition(
	ctx context.Context, positions jsapi.Bucket, groups, group int,
) (uint64, error) {
	var stored positionRecord
	if _, err := positions.GetJSON(ctx, positionKey(groups, group), &stored); err != nil {
		return 0, fmt.Errorf("hub views: %w", err)
	}
	return stored.Synced, nil
}

// loadPosition returns the position that was stored last; 0 if there is none, or if it is not one
// of this journal.
func (v *Views) loadPosition(ctx context.Context) (uint64, error) {
	stored, err := StoredPosition(ctx, v.cfg.Positions, v.cfg.Groups, v.cfg.Group)
	if err != nil {
		return 0, err
	}
	if stored > v.cfg.From {
		v.cfg.Logger.Warn(
			"position of hub views ignored: the journal ends before it", "position", stored,
			"journal_end", v.cfg.From,
		)
		// Otherwise it would look like one of this journal once that has grown.
		return 0, v.storePosition(ctx, 0)
	}
	return stored, nil
}

// storePosition stores a position.
func (v *Views) storePosition(ctx context.Context, position uint64) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	for {
		var stored positionRecord
		entry, err := v.cfg.Positions.GetJSON(ctx, v.positionKey(), &stored)
		if err != nil {
			return fmt.Errorf("hub views: %w", err)
		}
		if entry.Exists() && stored.Synced == position {
			return nil
		}
		_, err = v.cfg.Positions.CompareAndSetJSON(
			ctx, v.positionKey(), positionRecord{Synced: position}, entry.Revision,
		)
		if err == nil {
			return nil
		}
		if !errors.Is(err, jsapi.ErrConflict) {
			return fmt.Errorf("hub views: %w", err)
		}
	}
}

// StoreWritten stores Written as the position up to which the views are synced. It must be called
// after Run has returned and the files of the views have been synced to disk, which the broker's
// orderly stop alone does not do. The next run then compares no views.
func (v *Views) StoreWritten(ctx context.Context) error {
	return v.storePosition(ctx, v.Written())
}

// syncedPositions finds out which positions are synced.
type syncedPositions struct {
	// samples are positions that were written at a time, oldest first.
	samples []sample
	// stored is the position that was stored last.
	stored uint64
}

// sample is a position and when it had been written.
type sample struct {
	at       time.Time
	position uint64
}

// storeSynced stores the position that was written SyncDelay before now.
func (v *Views) storeSynced(ctx context.Context, p *syncedPositions, now time.Time) {
	delay := v.cfg.SyncDelay
	written := v.Written()
	if n := len(p.samples); n == 0 ||
		p.samples[n-1].position < written && now.Sub(p.samples[n-1].at) >= delay/10 {
		p.samples = append(p.samples, sample{now, written})
	}
	synced := -1
	for i, s := range p.samples {
		if now.Sub(s.at) < delay {
			break
		}
		synced = i
	}
	if synced < 0 {
		return
	}
	position := p.samples[synced].position
	if position > p.stored {
		v.step("store")
		err := v.syncFolders()
		if err == nil {
			err = v.storePosition(ctx, position)
		}
		if err != nil {
			if ctx.Err() == nil {
				v.cfg.Logger.Warn("position of hub views not stored", "error", err)
			}
			return
		}
		p.stored = position
	}
	// The newest sample stays, so that the position is sampled again only after it has changed.
	p.samples = p.samples[min(synced+1, len(p.samples)-1):]
}

// syncFolders syncs the folders in which streams were created.
func (v *Views) syncFolders() error {
	if v.cfg.SyncFolders == nil {
		return nil
	}
	for _, s := range v.ownShards() {
		s.mu.Lock()
		created := s.created
		s.created = false
		s.mu.Unlock()
		if !created {
			continue
		}
		if err := v.cfg.SyncFolders(s.account()); err != nil {
			s.mu.Lock()
			s.created = true
			s.mu.Unlock()
			return err
		}
	}
	return nil
}
