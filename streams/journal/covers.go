package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
)

// Covers reports whether the journal has every record of the hub that has not expired. Otherwise
// the hub's view may have messages from before there was a journal: the journal has not run for its
// retention yet, and does not have the hub's first record.
func (r *Reader) Covers(ctx context.Context, hub domain.HubID, tip Tip) (bool, error) {
	if r.full.Load() {
		return true, nil
	}
	info, err := r.journal.api.Info(ctx, streams.JournalStream(r.group))
	if err != nil {
		return false, fmt.Errorf("does the journal have all of %s: %w", hub, err)
	}
	if info.State.FirstSeq > 1 { // commits have expired
		r.full.Store(true)
		return true, nil
	}
	oldest, err := r.Oldest(ctx, hub, tip, time.Time{})
	if errors.Is(err, ErrGone) {
		return false, nil
	}
	return oldest == 1, err
}
